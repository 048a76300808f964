# qualify_library(NAME SOURCES a.cpp… HEADERS include/qualify/x/y.hpp… DEPS target…
#                 PRIVATE_DEPS target…)
#
# One static library a subfolder, target qualify_NAME. Public headers lie under
# <subfolder>/include/qualify/<module>/ and are the only ones others see: an include of a module
# that was not linked does not compile, which is how the one-way dependencies are kept.
function(qualify_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target qualify_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  target_sources(${target} PUBLIC FILE_SET HEADERS
    BASE_DIRS ${CMAKE_CURRENT_SOURCE_DIR}/include FILES ${ARG_HEADERS})
  target_link_libraries(${target}
    PUBLIC ${ARG_DEPS}
    PRIVATE qualify_warnings ${ARG_PRIVATE_DEPS})
  target_link_libraries(${target} PUBLIC qualify_settings)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    VERIFY_INTERFACE_HEADER_SETS ON) # lint.headers_stand_alone: each header compiles by itself
endfunction()

# qualify_test(NAME SOURCES a_test.cpp… DEPS target… [LABELS l…] [TIMEOUT s] [SERIAL])
#
# One GoogleTest executable, every TEST a CTest entry named NAME.Suite.Case. The environment is
# cleaned: UTC, C locale, no QUALIFY_* but the paths given here.
function(qualify_test name)
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  set(target ${name}_test)
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE qualify_settings qualify_warnings
    qualify_test_support GTest::gmock_main ${ARG_DEPS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  set(properties TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "TZ=UTC;LC_ALL=C.UTF-8")
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  if(ARG_SERIAL)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  gtest_discover_tests(${target} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES ${properties})
endfunction()
