// The attribute `config` of a <PubSubMessageExchange>.
#pragma once

#include <string>

#include "myelin.h"

namespace psmx_myelin {

struct Config {
  /// The two keys that CycloneDDS itself defines.
  std::string instance_name;
  std::string locator;
  bool keyed_topics = true;
  myelin_wait wait = MYELIN_WAIT_ADAPTIVE;
  /// Settings of the library's node; empty: the default.
  std::string folder;
  std::string group;

  /// Reads the text in the form in which CycloneDDS passes it: strings of `KEY=VALUE;`, each with a zero at its end,
  /// and one more zero at the end of all. A backslash escapes the next character. Throws a std::invalid_argument that
  /// names the key and the remedy.
  explicit Config(const char *text);

 private:
  void set(const std::string &key, const std::string &value);
};

}  // namespace psmx_myelin
