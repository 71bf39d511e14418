#include <cfenv>
#include <new>

#include "base/cpu/float_environment.h"

namespace trestle {

FloatEnvironment::FloatEnvironment() noexcept {
  static_assert(sizeof(std::fenv_t) <= sizeof(found_) && alignof(std::fenv_t) <= 16);
  std::fegetenv(new (found_) std::fenv_t);
  std::fesetenv(FE_DFL_ENV);
}

FloatEnvironment::~FloatEnvironment() {
  std::fesetenv(std::launder(reinterpret_cast<const std::fenv_t*>(found_)));
}

}  // namespace trestle
