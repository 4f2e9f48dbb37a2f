/** The root of the live system, built by mkosi: a tree of Debian packages, then our files on top. */
import type { Arch } from '../../appliance/appliance.ts'
import { programStep, type BuildFacts, type Step } from './step.ts'

/** Copied over the tree in this order; later ones win. */
const OVERLAYS = ['overlays/live', 'overlays/usb'] as const
const COMMON = ['mkosi.conf.d/00-tools.conf', 'mkosi.conf.d/10-common.conf'] as const

/** For the tree of packages. Fixed, so that a commit does not rebuild it; its times reach no image. */
const BASE_EPOCH = 1_767_225_600

interface TreeOptions {
  readonly arch: Arch
  readonly facts: BuildFacts
}

const mkosi = (name: string, arch: Arch, epoch: number) => [
  `--arch=${arch}`,
  `--epoch=${epoch}`,
  `--out=@${name}`,
  '--mkosi=@mkosi/root',
  '--tools=@tools/root',
  '--cache=%mkosi',
]

/** Makes `base` with all packages installed, their kernel `vmlinuz`, and the list `packages.json`. */
export const baseStep = (options: TreeOptions): Step =>
  programStep('tree', ['--profile=live-packages', ...mkosi('base', options.arch, BASE_EPOCH)], {
    name: 'base',
    says: 'Debian packages of the live system',
    inputs: ['@mkosi/root', '@tools/root', ...COMMON, 'mkosi.conf.d/20-live-packages.conf'].concat(
      options.arch === 'x86_64' ? ['mkosi.conf.d/21-live-packages-x86-64.conf'] : [],
    ),
    makes: ['base', 'vmlinuz', 'packages.json'],
  })

/** Makes `live`, the tree that is compressed and booted. */
export function treeStep(options: TreeOptions): Step {
  const laid = [...OVERLAYS, '@app/root'].map((tree) => `--overlay=${tree}`)
  const args = [
    '--profile=live',
    '--base=@base/base',
    ...mkosi('tree', options.arch, options.facts.epoch),
    ...laid,
  ]
  const confs = [...COMMON, 'mkosi.conf.d/30-live.conf', 'mkosi.conf.d/live.finalize']
  return programStep('tree', args, {
    name: 'tree',
    says: 'root file system of the live system',
    inputs: ['@mkosi/root', '@tools/root', '@base/base', '@app/root', ...confs, ...OVERLAYS],
    makes: ['live'],
  })
}
