/** The files that a build hands over, by what each product is, with the lists of what is in them. */
import type { Appliance, Arch } from '#appliance/appliance.ts'
import {
  boardImage,
  commonDebFiles,
  checksumsOf,
  containersFile,
  debFile,
  ipxeFile,
  LIVE_STEM,
  LIVE_SUMS,
  LIVE_TRIO,
  LIVE_USB,
  netbootStem,
  netbootTrio,
  secureBootFiles,
  secureBootStem,
  serverImage,
  serverUpdate,
  STICK_FILES,
  STICK_STEM,
  stemOf,
  usbIso,
} from '#appliance/assets.ts'
import { PROGRAMS } from '#build/steps/ipxe.ts'
import type { BuildFacts } from '#build/steps/step.ts'

export interface PlanOptions {
  readonly appliances: readonly Appliance[]
  readonly facts: BuildFacts
  /** The fixed machine server that our iPXE asks; null: the one that DHCP names. */
  readonly ipxeServer: string | null
  /** A source tree to compile iPXE from; null: Debian's binary is used. */
  readonly ipxeSource: string | null
}

/** Files that belong together: they share a list of checksums and a list of contents. */
export interface Bundle {
  readonly appliance: string
  /** Begins the names of the lists beside them: `flasher-netboot-pc-x86_64-v1.2.0`. */
  readonly stem: string
  readonly checksums: string
  readonly files: readonly { readonly asset: string; readonly from: string }[]
  /** Folders that are handed over as well, beside the files; they are parts of no release. */
  readonly folders?: readonly { readonly name: string; readonly from: string }[]
  /** Lists of the Debian packages in it, and of those that built it, each with a title. */
  readonly packages: readonly {
    readonly title: string
    readonly from: string
    readonly within: boolean
  }[]
  /** Lists of npm packages in it. */
  readonly npm: readonly string[]
  /** Lists of programs in it that come from no package. */
  readonly programs: readonly string[]
}

/** The step with the signed loaders of each architecture. */
export const SIGNED: Readonly<Record<Arch, string>> = {
  x86_64: 'boot-packages',
  arm64: 'arm64-packages',
}

type MakeBundle = (appliance: string, arch: Arch, options: PlanOptions) => Bundle

/** What the names of the steps of a live system begin with. */
export const LIVE_PREFIX: Readonly<Record<Arch, string>> = { x86_64: '', arm64: 'arm64-' }

/** The same for the server appliance. */
export const SERVER_PREFIX: Readonly<Record<Arch, string>> = {
  x86_64: 'server-',
  arm64: 'arm64-server-',
}

/** Names of steps are short: they stand in a column. */
export const INITRDS = {
  x86_64: { netboot: 'initrd-netboot', media: 'initrd-media' },
  arm64: { netboot: 'arm64-netboot', media: 'arm64-media' },
} as const satisfies Record<Arch, object>

const liveOf = (arch: Arch) => ({
  packages: [
    {
      title: 'in the root file system',
      from: `@${LIVE_PREFIX[arch]}base/packages.json`,
      within: true,
    },
    { title: 'of the tools that made it', from: '@tools/packages.json', within: false },
    { title: 'of mkosi, which ran them', from: '@mkosi/packages.json', within: false },
  ],
  npm: [`@${LIVE_PREFIX[arch]}app/packages.json`],
  programs: [],
})

const LIVE = liveOf('x86_64')

export const BUNDLES: Readonly<Record<Appliance['shape'], MakeBundle>> = {
  netboot: (appliance, arch, { facts: { version } }) => {
    const { kernel, initrd, squashfs } = netbootTrio(arch, version)
    const stem = netbootStem(arch, version)
    const prefix = LIVE_PREFIX[arch]
    const files = [
      { asset: kernel, from: `@${prefix}base/vmlinuz` },
      { asset: initrd, from: `@${INITRDS[arch].netboot}/initrd` },
      { asset: squashfs, from: `@${prefix}squashfs/root.squashfs` },
    ]
    return { appliance, stem, checksums: checksumsOf(stem), files, ...liveOf(arch) }
  },
  live: (appliance) => ({
    appliance,
    stem: LIVE_STEM,
    checksums: LIVE_SUMS,
    files: [
      { asset: LIVE_TRIO.vmlinuz, from: '@base/vmlinuz' },
      { asset: LIVE_TRIO.initrd, from: '@initrd-live/initrd' },
      { asset: LIVE_TRIO.squashfs, from: '@squashfs/root.squashfs' },
    ],
    ...LIVE,
  }),
  'live-usb': (appliance) => ({
    ...single(appliance, LIVE_USB, [{ asset: LIVE_USB, from: '@live-usb-zst/image.img.zst' }]),
    ...LIVE,
    packages: [...LIVE.packages, LOADERS],
  }),
  usb: (appliance, arch, { facts: { version } }) => {
    const asset = usbIso(arch, version)
    const files = [{ asset, from: '@iso/image.iso' }]
    return {
      ...single(appliance, asset, files),
      ...LIVE,
      packages: [...LIVE.packages, LOADERS],
    }
  },
  files: (appliance) => ({
    appliance,
    stem: STICK_STEM,
    checksums: checksumsOf(STICK_STEM),
    files: Object.values(STICK_FILES).map((asset) => ({ asset, from: `@usb-files/${asset}` })),
    folders: [{ name: STICK_STEM, from: `@usb-files/${STICK_STEM}` }],
    ...LIVE,
    packages: [...LIVE.packages, LOADERS],
  }),
  board: (appliance, arch, { facts: { version } }) => {
    const asset = boardImage(version)
    const live = liveOf(arch)
    return {
      ...single(appliance, asset, [{ asset, from: '@board/image.img.gz' }]),
      ...live,
      packages: [...live.packages, { ...LOADERS, from: '@board-packages/packages.json' }],
    }
  },
  server: (appliance, arch, { facts: { version } }) => {
    const asset = serverImage(arch)
    const { kernel, initrd, squashfs } = serverUpdate(arch, version)
    const prefix = SERVER_PREFIX[arch]
    const files = [
      { asset, from: `@${prefix}disk/disk.img.zst` },
      { asset: kernel, from: `@${prefix}base/vmlinuz` },
      { asset: initrd, from: `@${prefix}initrd/initrd` },
      { asset: squashfs, from: `@${prefix}squashfs/root.squashfs` },
    ]
    const within = {
      title: 'in the root file system',
      from: `@${prefix}base/packages.json`,
      within: true,
    }
    const tools = LIVE.packages.filter((list) => !list.within)
    const board = arch === 'arm64' ? BOARD_LOADERS : []
    return {
      ...single(appliance, asset, files),
      packages: [within, ...tools, ...TFTP, ...board],
      npm: [`@${prefix}app/packages.json`],
      programs: [],
    }
  },
  deb: (appliance, arch, { facts: { version } }) => {
    const asset = debFile(arch, version)
    const packages = LIVE.packages.filter((list) => !list.within)
    const [step, app] =
      arch === 'x86_64' ? ['deb', 'server-app'] : ['arm64-deb', 'arm64-server-app']
    const common = arch === 'x86_64' ? commonDebFiles(version) : []
    const files = [asset, ...common].map((file) => ({
      asset: file,
      from: `@${step}/${file.replace(/_.*/, '')}.deb`,
    }))
    return {
      ...single(appliance, asset, files),
      packages,
      npm: [`@${app}/packages.json`],
      programs: [],
    }
  },
  containers: (appliance, arch, { facts: { version } }) => {
    const asset = containersFile(arch, version)
    const files = [{ asset, from: '@containers/images.oci.tar' }]
    const packages = [
      { title: 'in the images', from: '@container-base/packages.json', within: true },
      ...TFTP,
      ...LIVE.packages.filter((list) => !list.within),
    ]
    return {
      ...single(appliance, asset, files),
      packages,
      npm: ['@server-app/packages.json'],
      programs: [],
    }
  },
  ipxe: (appliance, arch, { facts: { version }, ipxeSource }) => {
    const asset = ipxeFile(arch, version)
    const files = [{ asset, from: `@ipxe-${arch}/ipxe.efi` }]
    const packaged = [{ title: 'in it', from: '@ipxe-packages/packages.json', within: true }]
    const from =
      ipxeSource === null
        ? { packages: packaged, programs: [] }
        : { packages: [], programs: [`@ipxe-${arch}/${PROGRAMS}`] }
    return { ...single(appliance, asset, files), npm: [], ...from }
  },
  secureboot: (appliance, arch, { facts: { version } }) => {
    const names = secureBootFiles(arch, version)
    const stem = secureBootStem(arch, version)
    const from = `@secure-${arch}`
    return {
      appliance,
      stem,
      checksums: checksumsOf(stem),
      files: [
        { asset: names.shim, from: `${from}/shim.efi` },
        { asset: names.grub, from: `${from}/grub.efi` },
        { asset: names.config, from: `${from}/grub.cfg` },
      ],
      packages: [{ title: 'in it', from: `@${SIGNED[arch]}/packages.json`, within: true }],
      npm: [],
      programs: [],
    }
  },
}

const LOADERS = {
  title: 'of the boot loaders',
  from: '@boot-packages/packages.json',
  within: true,
} as const

/** Where the boot loaders for TFTP come from. */
const TFTP = [
  LOADERS,
  { title: 'of those for arm64', from: `@${SIGNED.arm64}/packages.json`, within: true },
  { title: 'that iPXE comes from', from: '@ipxe-packages/packages.json', within: true },
]

/** What starts a board, beside those for TFTP. */
const BOARD_LOADERS = [
  { title: 'of the firmware for boards', from: '@board-packages/packages.json', within: true },
  { title: 'of their boot loader', from: '@u-boot/packages.json', within: true },
]

const single = (appliance: string, asset: string, files: Bundle['files']) => ({
  appliance,
  stem: stemOf(asset),
  checksums: checksumsOf(asset),
  files,
})
