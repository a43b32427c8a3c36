/* What Fast DDS 2 and 3, and Fast CDR 1 and 2, name differently. */
#ifndef PEERS_FASTDDS_VERSIONS_HPP
#define PEERS_FASTDDS_VERSIONS_HPP

#if __has_include(<fastdds/config.hpp>)
#include <fastdds/config.hpp>
#else
#include <fastrtps/config.h>
#define FASTDDS_VERSION_MAJOR FASTRTPS_VERSION_MAJOR
#endif

#include <fastcdr/Cdr.h>
#include <fastcdr/config.h>

#if FASTDDS_VERSION_MAJOR >= 3
#include <fastdds/dds/core/ReturnCode.hpp>
#include <fastdds/dds/core/Time_t.hpp>
#include <fastdds/rtps/attributes/ResourceManagement.hpp>
#include <fastdds/rtps/common/InstanceHandle.hpp>
#include <fastdds/rtps/common/Locator.hpp>
#include <fastdds/rtps/common/SerializedPayload.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#include <fastdds/utils/IPLocator.hpp>

namespace rtps = eprosima::fastdds::rtps;
/* RETCODE_OK and its siblings: of a namespace here, of a class before. */
namespace codes = eprosima::fastdds::dds;
using eprosima::fastdds::dds::c_TimeInfinite;
#else
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/types/TypesBase.h>
#include <fastrtps/utils/IPLocator.h>

namespace rtps = eprosima::fastrtps::rtps;
using codes = eprosima::fastrtps::types::ReturnCode_t;
using eprosima::fastrtps::c_TimeInfinite;
#endif

namespace cdr {
#if FASTCDR_VERSION_MAJOR >= 2
constexpr auto DDS_CDR = eprosima::fastcdr::CdrVersion::DDS_CDR;

inline std::size_t length(const eprosima::fastcdr::Cdr &cdr)
{
  return cdr.get_serialized_data_length();
}
#else
constexpr auto DDS_CDR = eprosima::fastcdr::Cdr::DDS_CDR;

inline std::size_t length(const eprosima::fastcdr::Cdr &cdr)
{
  return cdr.getSerializedDataLength();
}
#endif
} // namespace cdr

#endif
