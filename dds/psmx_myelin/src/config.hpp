// The attribute `config` of a <PubSubMessageExchange>.
#pragma once

#include <string>

#include "myelin.h"

namespace psmx_myelin {

struct Config {
  /// CycloneDDS's own two.
  std::string instance_name;
  std::string locator;
  bool keyed_topics = true;
  myelin_wait wait = MYELIN_WAIT_ADAPTIVE;
  /// Of the library's node; empty: its default.
  std::string folder;
  std::string group;

  /// Reads it as CycloneDDS passes it on: texts of `KEY=VALUE;`, each ended by a zero, behind the last one
  /// a second zero; a backslash takes the next character as it is. Throws a std::invalid_argument that
  /// names the key and the remedy.
  explicit Config(const char *text);

 private:
  void set(const std::string &key, const std::string &value);
};

}  // namespace psmx_myelin
