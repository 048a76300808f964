# Compiler settings as INTERFACE targets; nothing here touches global flags.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

find_program(QUALIFY_CCACHE ccache)
if(QUALIFY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${QUALIFY_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${QUALIFY_CCACHE}")
endif()

add_library(qualify_settings INTERFACE)
target_compile_features(qualify_settings INTERFACE cxx_std_20)
# Floating point is evidence here: no contraction into FMA, no excess precision, whatever the target.
target_compile_options(qualify_settings INTERFACE -ffp-contract=off)
if(QUALIFY_SANITIZE)
  target_compile_options(qualify_settings INTERFACE
    -fsanitize=${QUALIFY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(qualify_settings INTERFACE -fsanitize=${QUALIFY_SANITIZE})
endif()

add_library(qualify_warnings INTERFACE)
target_compile_options(qualify_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  # GCC 12 sees overlapping copies in string concatenation (https://gcc.gnu.org/PR105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>,$<CONFIG:Release>>:-Wno-restrict>
  $<$<BOOL:${QUALIFY_WERROR}>:-Werror>)
