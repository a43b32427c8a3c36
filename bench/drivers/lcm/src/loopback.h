/* See loopback.c. */
#ifndef MYELIN_LCM_LOOPBACK_H
#define MYELIN_LCM_LOOPBACK_H

/* How many times a socket has joined a group on the loopback interface instead of any. */
unsigned myelin_lcm_joined_on_loopback(void);

#endif /* MYELIN_LCM_LOOPBACK_H */
