/** Names inside the initrd that the build writes and others look for. */

/** The one root that an initrd of ours accepts: its SHA-256, its size and its name. */
export const ROOT_MANIFEST = 'etc/root.manifest'
