/** Plans the step of the hybrid ISO; `build/programs/iso.ts` makes it and says what is inside. */
import type { Arch } from '#appliance/appliance.ts'
import type { Asks } from '#build/iso/grub.ts'
import { programStep, type BuildFacts, type Step } from './step.ts'

interface IsoOptions {
  readonly name: string
  readonly arch: Arch
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** The root below which the files of Debian's boot packages lie. */
  readonly packages: string
  /** How a person is asked; default: by the wizard. */
  readonly asks?: Asks
  readonly facts: BuildFacts
}

/** Plans the step that makes `image.iso`. */
export function isoStep({
  name,
  arch,
  kernel,
  initrd,
  squashfs,
  packages,
  asks = 'wizard',
  facts,
}: IsoOptions): Step {
  return programStep(
    'iso',
    Object.entries({
      kernel,
      initrd,
      squashfs,
      packages,
      asks,
      version: facts.version,
      epoch: String(facts.epoch),
      out: `@${name}/image.iso`,
    }).flatMap(([option, value]) => [`--${option}`, value]),
    {
      name,
      says: `ISO for sticks and discs (${arch})`,
      inputs: [kernel, initrd, squashfs, packages],
      makes: ['image.iso'],
      tools: true,
    },
  )
}
