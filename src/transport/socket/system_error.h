// Turns errors of socket calls into Errors. Internal to src/transport/socket; any thread.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "base/result.h"

namespace trestle {

// "send: Broken pipe". kRemoteError if the cause is the peer or the path to it. no_sanitize: this also runs when the
// process has no descriptor left. Then the sanitizer of virtual calls cannot look at the object and calls it invalid.
__attribute__((no_sanitize("vptr"))) inline Error socket_error(const char* what, int number = errno) {
  Code code = Code::kSystemError;
  switch (number) {
    case ECONNRESET:
    case ECONNREFUSED:
    case ECONNABORTED:
    case EPIPE:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case ENOTCONN:
      code = Code::kRemoteError;
  }
  return Error{code, std::string(what) + ": " + std::generic_category().message(number)};
}

}  // namespace trestle
