/** Plans a build: the steps that make the wanted products, and the files to hand over. */
import { ARCHS, type Appliance, type Arch } from '../appliance/appliance.ts'
import {
  checksumsOf,
  containersFile,
  debFile,
  DEBIAN_ARCHS,
  ipxeFile,
  netbootStem,
  netbootTrio,
  serverImage,
  serverUpdate,
  usbIso,
} from '../appliance/assets.ts'
import { ownerOf } from './cache/key.ts'
import { appStep, nodeStep, serverAppStep } from './steps/app.ts'
import { containersStep } from './steps/containers.ts'
import { debStep } from './steps/deb.ts'
import { initrdStep } from './steps/initrd.ts'
import { ipxeStep, PROGRAMS } from './steps/ipxe.ts'
import { isoStep } from './steps/iso.ts'
import { packagesStep } from './steps/packages.ts'
import { serverDiskStep } from './steps/server-disk.ts'
import { squashfsStep } from './steps/squashfs.ts'
import type { BuildFacts, Step } from './steps/step.ts'
import { toolsStep, withTools } from './steps/tools.ts'
import { baseStep, CONTAINER_ROOT, SERVER_ROOT, treeStep } from './steps/tree.ts'

interface PlanOptions {
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

export interface Plan {
  /** In an order that their inputs allow. */
  readonly steps: readonly Step[]
  readonly bundles: readonly Bundle[]
}

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

const MKOSI = packagesStep({
  name: 'mkosi',
  says: 'mkosi, which builds root trees',
  suite: 'forky',
  arch: 'amd64',
  packages: ['mkosi'],
})

/** Shim and GRUB as signed by Debian for Secure Boot, and GRUB for BIOS. */
const BOOT_PACKAGES = packagesStep({
  name: 'boot-packages',
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
  const root = { ...options, tree: '@tree/live', squashfs }
  const squashfsName = netbootTrio('x86_64', facts.version).squashfs
  const media = { ...options, kernel: '@base/vmlinuz', initrd: '@initrd-media/initrd', squashfs }
  const ipxe = { facts, server: ipxeServer, source: ipxeSource }
  return [
    MKOSI,
    toolsStep,
    nodeStep('x86_64'),
    appStep,
    baseStep(options),
    treeStep(options),
    squashfsStep(facts),
    initrdStep({ ...root, name: 'initrd-netboot', kind: 'netboot', squashfsName }),
    initrdStep({ ...root, name: 'initrd-media', kind: 'media', squashfsName: 'root.squashfs' }),
    BOOT_PACKAGES,
    isoStep({ ...media, name: 'iso', packages: '@boot-packages/root' }),
    IPXE_PACKAGES,
    ...serverSteps(facts),
    ...ARCHS.map((arch) => {
      const binary = `@ipxe-packages/root/usr/lib/ipxe/${IPXE_BINARIES[arch]}`
      return ipxeStep({ ...ipxe, name: `ipxe-${arch}`, arch, binary })
    }),
    baseStep(options, CONTAINER_ROOT),
    containersStep(DEBIAN_ARCHS.x86_64, facts),
  ].map(withTools)
}

function serverSteps(facts: BuildFacts): readonly Step[] {
  const options = { arch: 'x86_64', facts } as const
  const tree = '@server-tree/live'
  const squashfs = '@server-squashfs/root.squashfs'
  const { squashfs: squashfsName } = serverUpdate('x86_64', facts.version)
  const says = 'root file system of the server appliance, compressed'
  const kernel = '@server-base/vmlinuz'
  const initrd = '@server-initrd/initrd'
  return [
    serverAppStep,
    debStep(DEBIAN_ARCHS.x86_64, facts),
    baseStep(options, SERVER_ROOT),
    treeStep(options, SERVER_ROOT),
    squashfsStep(facts, { name: 'server-squashfs', says, tree }),
    initrdStep({ ...options, name: 'server-initrd', kind: 'slot', tree, squashfs, squashfsName }),
    serverDiskStep({ facts, kernel, initrd, squashfs, packages: '@boot-packages/root' }),
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

type MakeBundle = (appliance: string, arch: Arch, options: PlanOptions) => Bundle

const LIVE = {
  packages: [
    { title: 'in the root file system', from: '@base/packages.json', within: true },
    { title: 'of the tools that made it', from: '@tools/packages.json', within: false },
    { title: 'of mkosi, which ran them', from: '@mkosi/packages.json', within: false },
  ],
  npm: ['@app/packages.json'],
  programs: [],
} as const

const BUNDLES: Readonly<Record<Appliance['shape'], MakeBundle>> = {
  netboot: (appliance, arch, { facts: { version } }) => {
    const { kernel, initrd, squashfs } = netbootTrio(arch, version)
    const stem = netbootStem(arch, version)
    const files = [
      { asset: kernel, from: '@base/vmlinuz' },
      { asset: initrd, from: '@initrd-netboot/initrd' },
      { asset: squashfs, from: '@squashfs/root.squashfs' },
    ]
    return { appliance, stem, checksums: checksumsOf(stem), files, ...LIVE }
  },
  usb: (appliance, arch, { facts: { version } }) => {
    const asset = usbIso(arch, version)
    const files = [{ asset, from: '@iso/image.iso' }]
    return {
      ...single(appliance, asset, files),
      ...LIVE,
      packages: [...LIVE.packages, LOADERS],
    }
  },
  server: (appliance, arch, { facts: { version } }) => {
    const asset = serverImage(arch)
    const { kernel, initrd, squashfs } = serverUpdate(arch, version)
    const files = [
      { asset, from: '@server-disk/disk.img.zst' },
      { asset: kernel, from: '@server-base/vmlinuz' },
      { asset: initrd, from: '@server-initrd/initrd' },
      { asset: squashfs, from: '@server-squashfs/root.squashfs' },
    ]
    const within = {
      title: 'in the root file system',
      from: '@server-base/packages.json',
      within: true,
    }
    return {
      ...single(appliance, asset, files),
      packages: [within, ...LIVE.packages.filter((list) => !list.within), LOADERS],
      npm: ['@server-app/packages.json'],
      programs: [],
    }
  },
  deb: (appliance, arch, { facts: { version } }) => {
    const asset = debFile(arch, version)
    const packages = LIVE.packages.filter((list) => !list.within)
    const files = [{ asset, from: '@deb/flasher.deb' }]
    return {
      ...single(appliance, asset, files),
      packages,
      npm: ['@server-app/packages.json'],
      programs: [],
    }
  },
  containers: (appliance, arch, { facts: { version } }) => {
    const asset = containersFile(arch, version)
    const files = [{ asset, from: '@containers/images.oci.tar' }]
    const packages = [
      { title: 'in the images', from: '@container-base/packages.json', within: true },
      { title: 'that iPXE comes from', from: '@ipxe-packages/packages.json', within: true },
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
}

const LOADERS = {
  title: 'of the boot loaders',
  from: '@boot-packages/packages.json',
  within: true,
} as const

const single = (appliance: string, asset: string, files: Bundle['files']) => ({
  appliance,
  stem: asset.replace(/(?:\.(?:img|oci))?\.[a-z]+$/, ''),
  checksums: checksumsOf(asset),
  files,
})
