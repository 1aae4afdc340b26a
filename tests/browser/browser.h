#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul::testing {

// A headless Chromium, by its driver (WebDriver). A failure of either fails the test. One thread.
class Browser {
 public:
  static bool is_there();  // chromium and chromedriver

  Browser();
  ~Browser();
  Browser(const Browser&) = delete;

  bool is_open() const { return !session_.empty(); }

  void open(const std::string& url);
  // What a script of the page returns: "return document.title".
  nlohmann::json run(const std::string& script);
  // Waits until an expression of the page is true, for a minute at most; false: it was not.
  bool until(const std::string& condition);
  void drag(const std::string& selector, double from_x, double to_x);  // 0 to 1, at half of its height
  void point_at(const std::string& selector, double x);                // the same
  void double_click(const std::string& selector);
  void click(const std::string& selector);
  void type(const std::string& selector, const std::string& text);  // in place of what stands there
  // What a dialog asks that a click has opened, which it answers.
  std::string answer_dialog(bool yes);
  void look(int width, int height, bool is_dark, double scale = 1);  // the size of the window, and the colours

  // What the page has complained about since the last call: errors of scripts, files that are missing, what the
  // policy refused.
  std::vector<std::string> errors();
  std::string screenshot();  // a PNG file

 private:
  nlohmann::json call(const std::string& path, const nlohmann::json& body);
  std::string element(const std::string& selector);  // the path of its calls
  nlohmann::json execute(const std::string& command, const nlohmann::json& parameters);
  nlohmann::json place_of(const std::string& selector);
  void act(const nlohmann::json& actions);

  const TemporaryDirectory folder_;
  Process driver_;
  int port_ = 0;
  std::string session_;
};

}  // namespace longhaul::testing
