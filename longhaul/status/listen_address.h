#pragma once

#include <sys/socket.h>

#include <string>

namespace longhaul {

// An address of digits to listen on, and its port. Names are not looked up: none but "localhost" is known.
struct ListenAddress {
  sockaddr_storage socket_address{};
  socklen_t size = 0;
  std::string host;  // "127.0.0.1", "::1", "0.0.0.0"
  int port = 0;
  bool is_loopback = false;  // only this machine can reach it
};

// InvalidArgumentError: it is not "host:port" with an address of digits or "localhost". `option` is for the message.
ListenAddress parse_listen_address(const std::string& text, const std::string& option);

// "http://127.0.0.1:8080/"; an address of all interfaces is shown as one that works on this machine.
std::string page_url(const ListenAddress& address, int port);

// Whether these are the digits of an address, in brackets or not.
bool is_numeric_host(const std::string& host);

}  // namespace longhaul
