# libslurm ships no pkg-config or CMake file: find the header and library, define Slurm::slurm.
find_path(Slurm_INCLUDE_DIR slurm/slurm.h)
find_library(Slurm_LIBRARY slurm PATH_SUFFIXES slurm slurm-wlm)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Slurm REQUIRED_VARS Slurm_LIBRARY Slurm_INCLUDE_DIR)
if(Slurm_FOUND AND NOT TARGET Slurm::slurm)
  add_library(Slurm::slurm UNKNOWN IMPORTED)
  set_target_properties(Slurm::slurm PROPERTIES
    IMPORTED_LOCATION "${Slurm_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Slurm_INCLUDE_DIR}")
endif()
