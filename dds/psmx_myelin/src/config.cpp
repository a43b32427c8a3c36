#include "config.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <stdexcept>

namespace psmx_myelin {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

[[noreturn]] void refuse(const std::string &key, const std::string &value, const char *remedy) {
  throw std::invalid_argument("config: " + key + "=" + value + ": " + remedy);
}

bool parse_bool(const std::string &key, const std::string &value) {
  const std::string word = lower(value);
  if (word != "true" && word != "false") refuse(key, value, "set it to true or false");
  return word == "true";
}

myelin_wait parse_wait(const std::string &key, const std::string &value) {
  const std::string word = lower(value);
  if (word == "adaptive") return MYELIN_WAIT_ADAPTIVE;
  if (word == "block") return MYELIN_WAIT_BLOCK;
  if (word == "predictive") return MYELIN_WAIT_PREDICTIVE;
  if (word == "poll") return MYELIN_WAIT_POLL;
  refuse(key, value, "set it to adaptive, block, predictive or poll");
}

}  // namespace

void Config::set(const std::string &key, const std::string &value) {
  if (key == "INSTANCE_NAME" || key == "SERVICE_NAME") instance_name = value;
  else if (key == "LOCATOR") locator = lower(value);
  else if (key == "KEYED_TOPICS") keyed_topics = parse_bool(key, value);
  else if (key == "WAIT") wait = parse_wait(key, value);
  else if (key == "FOLDER") folder = value;
  else if (key == "GROUP") group = value;
  else refuse(key, value, "unknown key; the keys are WAIT, FOLDER, GROUP, KEYED_TOPICS, INSTANCE_NAME, LOCATOR");
}

Config::Config(const char *text) {
  for (; *text != '\0'; text += std::strlen(text) + 1) {
    std::string key, value;
    bool is_value = false;
    for (const char *at = text;; ++at) {
      if (*at == '\0' || *at == ';') {
        if (!key.empty()) set(key, value);
        key.clear();
        value.clear();
        is_value = false;
        if (*at == '\0') break;
      } else if (*at == '=' && !is_value) {
        is_value = true;
      } else if (*at == '\\' && is_value && at[1] != '\0') {
        value += *++at;
      } else {
        (is_value ? value : key) += *at;
      }
    }
  }
}

}  // namespace psmx_myelin
