/* Keeps LCM's multicast on the loopback interface.
 *
 * LCM joins its group on "any" interface, which to the kernel is that of the route to the group:
 * most often a network card, where packets of 64 KiB are cut to its MTU. LCM has no option for it;
 * its manual has the host's routing table changed. This program changes its own sockets instead:
 * its setsockopt stands before the C library's, and where somebody joins a group on any interface
 * it is the loopback interface that is joined, and sent to. LCM joins with both of its sockets, the
 * one that sends and the one that receives.
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
