/** Plans a build: the steps that make the wanted products, and the files to hand over. */
import { ARCHS, type Arch } from '#appliance/appliance.ts'
import { DEBIAN_ARCHS, LIVE_TRIO, netbootTrio, serverUpdate } from '#appliance/assets.ts'
import {
  BUNDLES,
  INITRDS,
  LIVE_PREFIX,
  SERVER_PREFIX,
  SIGNED,
  type Bundle,
  type PlanOptions,
} from './bundles.ts'
import { ownerOf } from '#build/cache/key.ts'
import { docsSiteStep } from '#build/steps/docs-site.ts'
import { appStep, ARM64_APP_STEPS, nodeStep, serverAppStep } from '#build/steps/app.ts'
import { boardStep } from '#build/steps/board.ts'
import { containersStep } from '#build/steps/containers.ts'
import { DEBIAN_PACKAGES } from '#build/debian/package-control.ts'
import { debStep } from '#build/steps/deb.ts'
import { initrdFilesSteps, initrdStep } from '#build/steps/initrd.ts'
import { ipxeStep } from '#build/steps/ipxe.ts'
import { isoStep } from '#build/steps/iso.ts'
import { packagesStep } from '#build/steps/packages.ts'
import { secureBootStep } from '#build/steps/secureboot.ts'
import { serverDiskStep } from '#build/steps/server-disk.ts'
import { appendStep, squashfsStep } from '#build/steps/squashfs.ts'
import type { BuildFacts, Step } from '#build/steps/step.ts'
import { tftpStep } from '#build/steps/tftp.ts'
import { usbFilesStep } from '#build/steps/usb-files.ts'
import { toolsStep, withTools } from '#build/steps/tools.ts'
import {
  APART,
  baseStep,
  CONTAINER_ROOT,
  LIVE_ROOTS,
  PACKAGES_EPOCH,
  SERVER_ROOTS,
  treeStep,
} from '#build/steps/tree.ts'
import { zstdStep } from '#build/steps/zstd.ts'

export interface Plan {
  /** The steps in an order that their inputs allow. */
  readonly steps: readonly Step[]
  readonly bundles: readonly Bundle[]
}

/**
 * Plans the images that `options` name for all of their processors, with the steps that these need
 * and no others.
 */
export function planImages(options: PlanOptions): Plan {
  const bundles = options.appliances.flatMap((appliance) =>
    appliance.archs.map((arch) => BUNDLES[appliance.shape](appliance.name, arch, options)),
  )
  const wanted = bundles.flatMap((bundle) => [
    ...bundle.files.map(({ from }) => from),
    ...bundle.packages.map(({ from }) => from),
    ...bundle.npm,
    ...bundle.programs,
  ])
  return { steps: pick(allSteps(options), wanted), bundles }
}

export const MKOSI = packagesStep({
  name: 'mkosi',
  says: 'mkosi, which builds root trees',
  suite: 'forky',
  arch: 'amd64',
  packages: ['mkosi'],
})

/** Shim and GRUB as signed by Debian for Secure Boot, and GRUB for BIOS. */
const BOOT_PACKAGES = packagesStep({
  name: SIGNED.x86_64,
  says: 'boot loaders for sticks and discs',
  suite: 'trixie',
  arch: 'amd64',
  packages: [
    'grub-common',
    'grub-efi-amd64-signed',
    'grub-pc-bin',
    'shim-helpers-amd64-signed',
    'shim-signed',
  ],
})

/** The same loaders for arm64, for the network alone. */
const BOOT_PACKAGES_ARM = packagesStep({
  name: SIGNED.arm64,
  says: 'signed boot loaders for arm64',
  suite: 'trixie',
  arch: 'arm64',
  packages: ['grub-efi-arm64-signed', 'shim-signed'],
})

/** What starts a board: the loaders for UEFI, and the firmware of a Raspberry Pi. */
const BOARD_PACKAGES = packagesStep({
  name: 'board-packages',
  says: 'boot loaders and firmware for boards',
  suite: 'trixie',
  arch: 'arm64',
  packages: ['grub-efi-arm64-signed', 'raspi-firmware', 'shim-helpers-arm64-signed', 'shim-signed'],
})

/** UEFI for boards whose own firmware has none. */
const U_BOOT_PACKAGES = packagesStep({
  name: 'u-boot',
  says: 'U-Boot for Raspberry Pi',
  suite: 'trixie',
  arch: 'arm64',
  packages: ['u-boot-rpi'],
})

/** One package holds the binaries of all architectures. */
const IPXE_PACKAGES = packagesStep({
  name: 'ipxe-packages',
  says: 'iPXE from Debian',
  suite: 'forky',
  arch: 'amd64',
  packages: ['ipxe'],
})

const IPXE_BINARIES: Readonly<Record<Arch, string>> = {
  x86_64: 'ipxe-amd64.efi',
  arm64: 'ipxe-arm64.efi',
}

/** All steps that exist, in an order that their inputs allow. */
function allSteps({ facts, ipxeServer, ipxeSource }: PlanOptions): readonly Step[] {
  const options = { arch: 'x86_64', facts } as const
  const squashfs = '@squashfs/root.squashfs'
  const media = { ...options, kernel: '@base/vmlinuz', initrd: '@initrd-media/initrd', squashfs }
  const ipxe = { facts, server: ipxeServer, source: ipxeSource }
  return [
    MKOSI,
    toolsStep,
    nodeStep,
    appStep,
    ...liveSteps('x86_64', facts),
    BOOT_PACKAGES,
    isoStep({ ...media, name: 'iso', packages: '@boot-packages/root' }),
    usbFilesStep({
      facts,
      kernel: media.kernel,
      initrd: media.initrd,
      squashfs,
      packages: '@boot-packages/root',
    }),
    BOOT_PACKAGES_ARM,
    docsSiteStep,
    ...ARM64_APP_STEPS,
    ...liveSteps('arm64', facts),
    BOARD_PACKAGES,
    boardStep({
      kernel: '@arm64-base/vmlinuz',
      initrd: '@arm64-media/initrd',
      squashfs: '@arm64-squashfs/root.squashfs',
      tree: '@arm64-base/base',
      packages: '@board-packages/root',
      facts,
    }),
    ...ARCHS.map((arch) => secureBootStep({ arch, packages: SIGNED[arch] })),
    initrdStep({
      facts,
      name: 'initrd-live',
      kind: 'netboot',
      sharesFilesOf: INITRDS.x86_64.netboot,
      squashfs,
      squashfsName: LIVE_TRIO.squashfs,
    }),
    isoStep({ ...media, name: 'live-usb', packages: '@boot-packages/root', asks: 'panes' }),
    zstdStep({
      name: 'live-usb-zst',
      says: 'the stick of the earlier line, compressed',
      from: '@live-usb/image.iso',
      makes: 'image.img.zst',
    }),
    IPXE_PACKAGES,
    ...ARCHS.map((arch) => {
      const binary = `@ipxe-packages/root/usr/lib/ipxe/${IPXE_BINARIES[arch]}`
      return ipxeStep({ ...ipxe, name: `ipxe-${arch}`, arch, binary })
    }),
    tftpStep,
    serverAppStep,
    debStep({
      name: 'deb',
      arch: 'x86_64',
      app: 'server-app',
      packages: DEBIAN_PACKAGES,
      facts,
    }),
    // The others are the same for every processor.
    debStep({
      name: 'arm64-deb',
      arch: 'arm64',
      app: 'arm64-server-app',
      packages: ['flasher'],
      facts,
    }),
    U_BOOT_PACKAGES,
    ...ARCHS.flatMap((arch) => serverSteps(arch, facts)),
    baseStep(options, CONTAINER_ROOT),
    containersStep(DEBIAN_ARCHS.x86_64, facts),
  ].map(withTools)
}

/** Root and initrds of the live system. */
function liveSteps(arch: Arch, facts: BuildFacts): readonly Step[] {
  const options = { arch, facts }
  const prefix = LIVE_PREFIX[arch]
  const tree = `@${prefix}tree/live`
  const rest = `${prefix}squashfs-rest`
  const squashfs = `@${prefix}squashfs/root.squashfs`
  const netboot = { facts, name: INITRDS[arch].netboot, kind: 'netboot' } as const
  const media = { facts, name: INITRDS[arch].media, kind: 'media' } as const
  const netbootName = netbootTrio(arch, facts.version).squashfs
  return [
    baseStep(options, LIVE_ROOTS[arch]),
    treeStep(options, LIVE_ROOTS[arch]),
    squashfsStep({
      name: rest,
      says: 'all but our programs, compressed',
      tree,
      epoch: PACKAGES_EPOCH,
      level: facts.level,
    }),
    appendStep({
      facts,
      name: `${prefix}squashfs`,
      says: 'root file system, compressed',
      base: `@${rest}/root.squashfs`,
      folder: `@${prefix}tree/${APART}`,
    }),
    ...initrdFilesSteps({ ...netboot, arch, tree }),
    initrdStep({ ...netboot, squashfs, squashfsName: netbootName }),
    ...initrdFilesSteps({ ...media, arch, tree }),
    initrdStep({ ...media, squashfs, squashfsName: 'root.squashfs' }),
  ]
}

/** What starts the disk of a server. */
const SERVER_BOOT_PARTS = {
  x86_64: { packages: '@boot-packages/root' },
  arm64: {
    packages: '@board-packages/root',
    board: {
      tree: '@arm64-server-base/base',
      uboot: '@u-boot/root/usr/lib/u-boot/rpi_arm64/u-boot.bin',
    },
  },
} as const satisfies Record<Arch, object>

function serverSteps(arch: Arch, facts: BuildFacts): readonly Step[] {
  const options = { arch, facts }
  const prefix = SERVER_PREFIX[arch]
  const tree = `@${prefix}tree/live`
  const squashfs = `@${prefix}squashfs/root.squashfs`
  const { squashfs: squashfsName } = serverUpdate(arch, facts.version)
  const says = 'root file system of the server appliance, compressed'
  const initrd = { facts, name: `${prefix}initrd`, kind: 'slot' } as const
  return [
    baseStep(options, SERVER_ROOTS[arch]),
    treeStep(options, SERVER_ROOTS[arch]),
    squashfsStep({ name: `${prefix}squashfs`, says, tree, ...facts }),
    ...initrdFilesSteps({ ...initrd, arch, tree }),
    initrdStep({ ...initrd, squashfs, squashfsName }),
    serverDiskStep({
      ...options,
      ...SERVER_BOOT_PARTS[arch],
      name: `${prefix}disk`,
      kernel: `@${prefix}base/vmlinuz`,
      initrd: `@${prefix}initrd/initrd`,
      squashfs,
    }),
  ]
}

/** The steps that make `wanted`, and those that they depend on. */
function pick(steps: readonly Step[], wanted: readonly string[]): readonly Step[] {
  const names = new Set(wanted.map(ownerOf))
  for (const step of steps.toReversed()) {
    if (names.has(step.name)) for (const input of step.inputs) names.add(ownerOf(input))
  }
  return steps.filter(({ name }) => names.has(name))
}
