/* What Fast DDS 2 and Fast DDS 3 name differently. */
#ifndef MYELIN_FASTDDS_VERSIONS_HPP
#define MYELIN_FASTDDS_VERSIONS_HPP

#if __has_include(<fastdds/config.hpp>)
#include <fastdds/config.hpp>
#else
#include <fastrtps/config.h>
#define FASTDDS_VERSION_MAJOR FASTRTPS_VERSION_MAJOR
#define FASTDDS_VERSION_MINOR FASTRTPS_VERSION_MINOR
#define FASTDDS_VERSION_MICRO FASTRTPS_VERSION_MICRO
#define FASTDDS_VERSION_STR FASTRTPS_VERSION_STR
#endif

/* Whether messages of more than 64 KiB arrive over shared memory. Where Fast DDS has its statistics
 * built in, they grew by 60 bytes on the way until 2.14.5, 3.1.3 and 3.2.1, and readers refused them. */
#ifdef FASTDDS_STATISTICS
#define FASTDDS_VERSION \
  (FASTDDS_VERSION_MAJOR * 10000 + FASTDDS_VERSION_MINOR * 100 + FASTDDS_VERSION_MICRO)
#define FASTDDS_SENDS_WHOLE \
  ((FASTDDS_VERSION >= 21405 && FASTDDS_VERSION < 30000) || \
   (FASTDDS_VERSION >= 30103 && FASTDDS_VERSION != 30200))
#else
#define FASTDDS_SENDS_WHOLE 1
#endif

#if FASTDDS_VERSION_MAJOR >= 3
#include <fastdds/dds/core/ReturnCode.hpp>
#include <fastdds/dds/core/Time_t.hpp>
#include <fastdds/rtps/common/InstanceHandle.hpp>
#include <fastdds/rtps/common/SerializedPayload.hpp>

/* The first part of the names of the shared memory transport's files. */
#define FASTDDS_SEGMENT "fastdds_"

namespace myelin {
/* RETCODE_OK and its siblings: of a namespace here, of a class before. */
namespace codes = eprosima::fastdds::dds;
using eprosima::fastdds::dds::Duration_t;
using eprosima::fastdds::rtps::InstanceHandle_t;
using eprosima::fastdds::rtps::SerializedPayload_t;
} // namespace myelin
#else
#include <fastdds/rtps/common/InstanceHandle.h>
#include <fastdds/rtps/common/SerializedPayload.h>
#include <fastrtps/types/TypesBase.h>
#include <fastrtps/utils/TimeConversion.h>

#define FASTDDS_SEGMENT "fastrtps_"

namespace myelin {
using codes = eprosima::fastrtps::types::ReturnCode_t;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;
} // namespace myelin
#endif

#endif
