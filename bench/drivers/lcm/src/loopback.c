/* Keeps LCM's multicast on the loopback interface.
 *
 * LCM joins its group on "any" interface. The kernel then chooses that of the route to the group:
 * usually a network card, where packets of 64 KiB are split to its MTU. LCM has no option for it,
 * and its manual recommends to change the host's routing table. This program changes only its own
 * sockets: its setsockopt replaces the C library's. When a socket joins a group on any interface,
 * it joins on the loopback interface instead, and also sends there. LCM joins with both of its
 * sockets, the sending one and the receiving one.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loopback.h"

static unsigned joined;

unsigned myelin_lcm_joined_on_loopback(void)
{
  return joined;
}

static int forward(int fd, int level, int option, const void *value, socklen_t bytes)
{
  return (int)syscall(SYS_setsockopt, fd, level, option, value, bytes);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
  struct ip_mreq group;
  if (level != IPPROTO_IP || option != IP_ADD_MEMBERSHIP || bytes != sizeof group)
    return forward(fd, level, option, value, bytes);
  memcpy(&group, value, sizeof group);
  if (group.imr_interface.s_addr != htonl(INADDR_ANY))
    return forward(fd, level, option, value, bytes);
  group.imr_interface.s_addr = htonl(INADDR_LOOPBACK);
  const int status = forward(fd, IPPROTO_IP, IP_MULTICAST_IF, &group.imr_interface,
                             sizeof group.imr_interface);
  if (status != 0)
    return status;
  joined++;
  return forward(fd, level, option, &group, sizeof group);
}
