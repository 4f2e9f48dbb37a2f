/** An initrd of our own, which accepts exactly one root. */
import type { Arch } from '../../appliance/appliance.ts'
import type { Variant } from '../initrd/choices.ts'
import { programStep, type BuildFacts, type Level, type Step } from './step.ts'

interface InitrdStepOptions {
  readonly name: string
  readonly kind: Variant
  readonly arch: Arch
  /** The root tree: drivers, firmware and busybox come from it. */
  readonly tree: string
  readonly squashfs: string
  /** Its name on a server. */
  readonly squashfsName: string
  readonly facts: BuildFacts
}

const OVERLAY = 'overlays/initrd'
const SAYS = {
  netboot: 'initrd for booting from the network',
  media: 'initrd for booting from a stick or disc',
  slot: 'initrd of the server appliance',
} as const
/** Levels of zstd; 19 takes some 15 seconds longer and saves a fifth. */
const LEVELS: Readonly<Record<Level, number>> = { dev: 9, release: 19 }

export function initrdStep(options: InitrdStepOptions): Step {
  const { name, kind, arch, tree, squashfs, squashfsName, facts } = options
  const values = {
    tree,
    overlay: OVERLAY,
    variant: kind,
    arch,
    version: facts.version,
    epoch: String(facts.epoch),
    level: String(LEVELS[facts.level]),
    squashfs,
    name: squashfsName,
    out: `@${name}/initrd`,
  }
  return programStep(
    'initrd',
    Object.entries(values).flatMap(([option, value]) => [`--${option}`, value]),
    { name, says: SAYS[kind], inputs: [OVERLAY, tree, squashfs], makes: ['initrd'] },
  )
}
