/** Names that the images and the programs running in them must spell alike. */

/** What our live system takes from the kernel command line. */
export const KERNEL_ARGS = {
  /** The machine server: `http://host:port`, or a bare name. */
  server: 'flasher.server',
  /** The network card by which this machine booted: the server drives it by that name. */
  mac: 'flasher.mac',
  /** Proves to the server that it sent this boot; see `[pxe] tokens`. */
  token: 'flasher.token',
  /** The catalog that the wizard offers as its default. */
  catalog: 'flasher.catalog',
  /** Where the initrd fetches the root file system, and its SHA-256 in hexadecimal. */
  squashfs: 'flasher.squashfs',
  sha256: 'flasher.sha256',
  /** The identity of the medium that holds the root file system. */
  media: 'flasher.media',
  /** A public key that may log in by SSH; without it no SSH runs. */
  sshKey: 'flasher.ssh_key',
} as const

/** exFAT labels hold 11 characters, so the partition's own name says more than the label. */
export const IMAGES_PARTITION = { name: 'FLASHER_IMAGES', label: 'FLASHER_IMG' } as const

/** A folder of this name on a stick of Ventoy's is looked through as well. */
export const VENTOY_FOLDER = 'flasher-images'

export const LIVE_PATHS = {
  /** Program, Node and packages of the live system; `runtime/` and `appliance/` lie below. */
  home: '/usr/lib/flasher',
  node: '/usr/lib/flasher/node',
  /** The images partition is mounted here, and the wizard looks here. */
  images: '/var/lib/flasher/images',
  /** What the initrd learned, for the programs that come after it: `KEY=value` lines. */
  bootFacts: '/run/flasher/boot',
  /** Lines that say how far the wizard is; made anew at each boot. */
  status: '/run/flasher.status',
} as const

/** Keys of the lines in `LIVE_PATHS.bootFacts`; what does not apply is missing or empty. */
export const BOOT_FACTS = {
  /** Where the root came from: `http`, `medium`, or `handed-over` by the boot loader. */
  origin: 'origin',
  url: 'url',
  /** The device with the file system that holds the root, and the whole disk that it is a part of. */
  medium: 'medium',
  mediumDisk: 'medium_disk',
  /** The ISO file on it that holds the root, from the file system's top; a stick of Ventoy's has one. */
  mediumFile: 'medium_file',
  /** `yes`: the medium may be removed. */
  toMemory: 'to_memory',
  interface: 'interface',
  /** With the length of its prefix: `10.0.2.15/24`. */
  address: 'address',
  version: 'version',
} as const
