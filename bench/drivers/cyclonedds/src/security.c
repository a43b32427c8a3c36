#define _GNU_SOURCE
#include "security.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dds/dds.h"

/* The folder of the library that runs, without links; false if it cannot be read. */
static bool library_folder(char folder[PATH_MAX])
{
  Dl_info info;
  if (dladdr((const void *)(uintptr_t)dds_create_participant, &info) == 0 ||
      realpath(info.dli_fname, folder) == NULL)
    return false;
  *strrchr(folder, '/') = '\0';
  return true;
}

/* A plug-in is beside the library, or in a folder there of its name, where Debian has it. */
static bool find(const char *kind, char path[PATH_MAX])
{
  char folder[PATH_MAX];
  char pattern[2 * PATH_MAX];
  if (!library_folder(folder))
    return false;
  (void)snprintf(pattern, sizeof pattern, "%s/{,libddsc*/}libdds_security_%s.so", folder, kind);
  glob_t found;
  const bool is_there = glob(pattern, GLOB_BRACE, NULL, &found) == 0;
  if (is_there)
    (void)snprintf(path, PATH_MAX, "%s", found.gl_pathv[0]);
  globfree(&found);
  return is_there;
}

const char *myelin_cyclonedds_no_security(void)
{
  char path[PATH_MAX];
  if (find("auth", path) && find("ac", path) && find("crypto", path))
    return NULL;
  return "no plug-ins for DDS Security beside CycloneDDS's library (libdds_security_auth.so, _ac, _crypto): "
         "install Debian's libddsc0debian, or build CycloneDDS with -DENABLE_SECURITY=ON";
}

/* One plug-in: its library, what its functions are for, and elements with their files. */
static void write_plug_in(FILE *out, const char *element, const char *kind, const char *functions,
                          const char *enclave, const char *const (*files)[2])
{
  char path[PATH_MAX] = "";
  (void)find(kind, path);
  (void)fprintf(out,
                "      <%s>\n"
                "        <Library path=\"%s\" initFunction=\"init_%s\" finalizeFunction=\"finalize_%s\"/>\n",
                element, path, functions, functions);
  for (; files != NULL && (*files)[0] != NULL; files++)
    (void)fprintf(out, "        <%s>file:%s/%s</%s>\n", (*files)[0], enclave, (*files)[1], (*files)[0]);
  (void)fprintf(out, "      </%s>\n", element);
}

void myelin_cyclonedds_write_security(FILE *out, const struct myelin_bench_prepare *prepare)
{
  static const char *const identity[][2] = {{"IdentityCA", "identity_ca.cert.pem"},
                                            {"IdentityCertificate", "cert.pem"},
                                            {"PrivateKey", "key.pem"},
                                            {"CRL", "crl.pem"},
                                            {NULL, NULL}};
  static const char *const rights[][2] = {{"PermissionsCA", "permissions_ca.cert.pem"},
                                          {"Governance", "governance.p7s"},
                                          {"Permissions", "permissions.p7s"},
                                          {NULL, NULL}};
  if (prepare->enclave == NULL)
    return;
  (void)fputs("    <Security>\n"
              "      <!-- An enclave of a keystore of SROS 2; that of a run is removed at its end. -->\n",
              out);
  write_plug_in(out, "Authentication", "auth", "authentication", prepare->enclave, identity);
  write_plug_in(out, "AccessControl", "ac", "access_control", prepare->enclave, rights);
  write_plug_in(out, "Cryptographic", "crypto", "crypto", prepare->enclave, NULL);
  (void)fputs("    </Security>\n", out);
}

const char *myelin_cyclonedds_refusal(const struct myelin_bench_prepare *prepare)
{
  return prepare->enclave == NULL ? NULL
                                  : "CycloneDDS writes in the logs of both sides which file or certificate is refused";
}
