/* Preprocessed by build.rs to find out which Fast DDS there is. */
#include <fastrtps/config.h>
found_fastdds FASTRTPS_VERSION_MAJOR FASTRTPS_VERSION_MINOR FASTRTPS_VERSION_MICRO
