/* Preprocessed by build.rs to find out which Fast DDS there is. */
#if __has_include(<fastdds/config.hpp>)
#include <fastdds/config.hpp>
found_fastdds FASTDDS_VERSION_MAJOR FASTDDS_VERSION_MINOR FASTDDS_VERSION_MICRO
#else
#include <fastrtps/config.h>
found_fastdds FASTRTPS_VERSION_MAJOR FASTRTPS_VERSION_MINOR FASTRTPS_VERSION_MICRO
#endif
