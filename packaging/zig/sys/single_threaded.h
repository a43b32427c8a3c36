/* GNU's C++ library asks for this header of glibc 2.32 and newer. A package runs with older ones: it takes every
   program for one with threads. */
#pragma once
static const char __libc_single_threaded = 0;
