/** The empty configuration that the OCI image specification has for manifests without one. */

/** `{}`, and its descriptor. */
export const EMPTY_CONFIG = {
  bytes: '{}',
  descriptor: {
    mediaType: 'application/vnd.oci.empty.v1+json',
    digest: 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
    size: 2,
  },
} as const
