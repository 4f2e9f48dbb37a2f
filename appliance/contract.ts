/** Names that images and the programs in them share. */

/** Options of the live system on the kernel command line. */
export const KERNEL_ARGS = {
  /** The machine server: `http://host:port`, or a bare name. */
  server: 'flasher.server',
  /** The other servers of the site, with commas between them. */
  servers: 'flasher.servers',
  /** The MAC address of the network card that the machine booted from; the server knows the machine by it. */
  mac: 'flasher.mac',
  /** Earlier line: the image to flash, what follows the flash, and `interactive` for a person. */
  imageUrl: 'flasher.image_url',
  provisioning: 'flasher.provisioning',
  mode: 'flasher.mode',
  /** Proves to the server that this boot came from it; see `[pxe] tokens`. */
  token: 'flasher.token',
  /** The catalog that the wizard offers as its default. */
  catalog: 'flasher.catalog',
  /** Where the initrd fetches the root file system, and its SHA-256 in hexadecimal. */
  squashfs: 'flasher.squashfs',
  sha256: 'flasher.sha256',
  /** The identity of the medium that holds the root file system. */
  media: 'flasher.media',
  /** `1`: the initrd reads the root on the medium completely and compares its digest before it starts it. */
  verify: 'flasher.verify',
  /** The public key that may log in over SSH; without it SSH does not run. */
  sshKey: 'flasher.ssh_key',
} as const

/** What a live system announces when it requests its plan: `GET /pxe/{mac}/plan?features=…`. */
export const FEATURES = {
  firstBoot: 'first-boot',
  capture: 'capture',
  diskId: 'disk-id',
  sources: 'sources',
} as const

/** exFAT labels hold only 11 characters, so the label is shorter than the partition's name. */
export const IMAGES_PARTITION = { name: 'FLASHER_IMAGES', label: 'FLASHER_IMG' } as const

/** On a Ventoy stick and on a stick of files, images are found in this folder. */
export const VENTOY_FOLDER = 'flasher-images'

export const LIVE_PATHS = {
  /** Our programs and the npm packages that they import; `runtime/` and `appliance/` lie below. */
  home: '/opt/flasher',
  node: '/usr/lib/flasher/node',
  /** The images partition is mounted here, where the wizard looks. */
  images: '/var/lib/flasher/images',
  /** What the initrd found out, as `KEY=value` lines. */
  bootFacts: '/run/flasher/boot',
  /** The wizard's progress by line; new at each boot. */
  status: '/run/flasher.status',
} as const

/** Node, our programs and their npm packages on servers and in the Debian package. */
export const SERVICE_HOME = '/usr/lib/flasher'

/** What machines load by TFTP lies here, on servers that we ship. */
export const TFTP_FOLDER = '/var/lib/tftpboot'

/** Keys of the lines in `LIVE_PATHS.bootFacts`; a value that does not apply is missing or empty. */
export const BOOT_FACTS = {
  /** The origin of the root: `http`, `medium`, `slot` of a server, or `handed-over` by the boot loader. */
  origin: 'origin',
  /** The whole disk that holds the slot. */
  slotDisk: 'slot_disk',
  url: 'url',
  /** The device with the file system that holds the root, and its whole disk. */
  medium: 'medium',
  mediumDisk: 'medium_disk',
  /** The path of the ISO file on it that holds the root, as on a Ventoy stick. */
  mediumFile: 'medium_file',
  /** `yes` when the medium has a folder for images beside the root, as a stick of files has. */
  imagesBeside: 'images_beside',
  /** `yes` when the root was copied to memory: the medium may be removed. */
  toMemory: 'to_memory',
  interface: 'interface',
  /** The address with its prefix length: `10.0.2.15/24`. */
  address: 'address',
  version: 'version',
} as const
