/** The root of the live system, built by mkosi: a tree of Debian packages, then our files on top. */
import type { Arch } from '#appliance/appliance.ts'
import { programStep, type BuildFacts, type Step } from './step.ts'

const COMMON = ['mkosi.conf.d/00-tools.conf', 'mkosi.conf.d/10-common.conf'] as const

/**
 * The time of what comes from packages alone. It is fixed, so that a commit does not rebuild it.
 */
export const PACKAGES_EPOCH = 1_767_225_600

interface TreeOptions {
  readonly arch: Arch
  readonly facts: BuildFacts
}

/** A root of its own, with its packages, settings and files. */
interface RootPlan {
  /** Begins the names of its steps; empty: the live system's. */
  readonly prefix: string
  readonly says: string
  /** The profiles of mkosi's configuration: of the packages, and of the whole tree. */
  readonly profiles: readonly [packages: string, whole: string]
  /** The configurations of mkosi.conf.d. */
  readonly packages: readonly string[]
  readonly settings: readonly string[]
  /** The overlays are copied over the tree in this order; later ones win. */
  readonly overlays: readonly string[]
  /** A folder of the root that becomes a tree of its own, because it changes more often than the rest. */
  readonly apart?: string
}

/** Holds our programs, see `LIVE_PATHS.home`. */
export const APART = 'opt'

const LIVE_ROOT: RootPlan = {
  prefix: '',
  says: 'the live system',
  profiles: ['live-packages', 'live'],
  packages: ['20-live-packages.conf', '21-live-packages-x86-64.conf'],
  settings: ['30-live.conf', 'live.finalize'],
  overlays: ['overlays/live', 'overlays/usb', '@app/root'],
  apart: APART,
}

export const LIVE_ROOTS: Readonly<Record<Arch, RootPlan>> = {
  x86_64: LIVE_ROOT,
  arm64: {
    ...LIVE_ROOT,
    prefix: 'arm64-',
    says: 'the arm64 system',
    packages: ['20-live-packages.conf', '21-live-packages-arm64.conf'],
    settings: ['30-live.conf', '31-live-arm64.conf', 'live.finalize'],
    overlays: ['overlays/live', 'overlays/usb', '@arm64-app/root'],
  },
}

const SERVER_ROOT: RootPlan = {
  prefix: 'server-',
  says: 'the server appliance',
  profiles: ['server-packages', 'server'],
  packages: ['40-server-packages.conf', '41-server-packages-x86-64.conf'],
  settings: ['42-server.conf', 'server.finalize'],
  overlays: ['overlays/service', 'overlays/server', '@server-app/root', '@tftp/root'],
}

export const SERVER_ROOTS: Readonly<Record<Arch, RootPlan>> = {
  x86_64: SERVER_ROOT,
  arm64: {
    ...SERVER_ROOT,
    prefix: 'arm64-server-',
    says: 'the arm64 server appliance',
    packages: ['40-server-packages.conf', '41-server-packages-arm64.conf'],
    settings: ['42-server.conf', '43-server-arm64.conf', 'server.finalize'],
    overlays: ['overlays/service', 'overlays/server', '@arm64-server-app/root', '@tftp/root'],
  },
}

/** Packages alone: the programs lie over it as a layer. */
export const CONTAINER_ROOT: RootPlan = {
  prefix: 'container-',
  says: 'the container images',
  profiles: ['container-packages', 'container'],
  packages: ['50-container-packages.conf'],
  settings: [],
  overlays: [],
}

const mkosi = (name: string, arch: Arch, epoch: number) => [
  `--arch=${arch}`,
  `--epoch=${epoch}`,
  `--out=@${name}`,
  '--mkosi=@mkosi/root',
  '--tools=@tools/root',
  '--cache=%mkosi',
]

const confOf = (name: string) => `mkosi.conf.d/${name}`

/**
 * Plans the step that makes `base` with all packages installed, their kernel `vmlinuz`, and the
 * list `packages.json`.
 */
export function baseStep({ arch }: TreeOptions, root: RootPlan): Step {
  const name = `${root.prefix}base`
  return programStep(
    'tree',
    [`--profile=${root.profiles[0]}`, ...mkosi(name, arch, PACKAGES_EPOCH)],
    {
      name,
      says: `Debian packages of ${root.says}`,
      inputs: ['@mkosi/root', '@tools/root', ...COMMON, ...root.packages.map(confOf)],
      makes: ['base', ...(root === CONTAINER_ROOT ? [] : ['vmlinuz']), 'packages.json'],
    },
  )
}

/**
 * Plans the step that makes `live`, the tree that is compressed and booted, and the folder that
 * lies apart from it.
 */
export function treeStep({ arch, facts }: TreeOptions, root: RootPlan): Step {
  const [name, base] = [`${root.prefix}tree`, `@${root.prefix}base/base`]
  const apart = root.apart === undefined ? [] : [root.apart]
  const args = [
    `--profile=${root.profiles[1]}`,
    `--base=${base}`,
    ...mkosi(name, arch, facts.epoch),
    ...root.overlays.map((tree) => `--overlay=${tree}`),
    ...apart.map((folder) => `--apart=${folder}`),
  ]
  const confs = [...COMMON, ...root.settings.map(confOf)]
  return programStep('tree', args, {
    name,
    says: `root file system of ${root.says}`,
    inputs: ['@mkosi/root', '@tools/root', base, ...confs, ...root.overlays],
    makes: ['live', ...apart],
  })
}
