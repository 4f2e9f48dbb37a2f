/** iPXE for UEFI with our script: Debian's binary with a section added, or compiled from source. */
import type { Arch } from '#appliance/appliance.ts'
import { programStep, type BuildFacts, type Step } from './step.ts'

interface IpxeStepOptions {
  readonly name: string
  readonly arch: Arch
  /** The packaged program of this architecture. */
  readonly binary: string
  /** A fixed server, instead of the one that DHCP names. */
  readonly server: string | null
  /** A source tree of iPXE that is compiled instead. */
  readonly source: string | null
  readonly facts: BuildFacts
}

/** Names the version of iPXE that was compiled. */
export const PROGRAMS = 'programs.json'

const SCRIPT = 'overlays/ipxe/flasher.ipxe'

/** Plans the step that makes `ipxe.efi`, and `programs.json` where it is compiled. */
export function ipxeStep({ name, arch, binary, server, source, facts }: IpxeStepOptions): Step {
  const common = ['--script', SCRIPT, ...(server === null ? [] : ['--server', server])]
  const out = ['--out', `@${name}/ipxe.efi`]
  const says = `iPXE for UEFI on ${arch}, with our script`
  const step = { name, says, makes: ['ipxe.efi'] }
  if (source === null) {
    const inputs = [SCRIPT, binary]
    return programStep('pe-section', ['--program', binary, ...common, ...out], { ...step, inputs })
  }
  return programStep(
    'ipxe-source',
    ['--source', source, '--arch', arch, ...common, ...out, '--list', `@${name}/${PROGRAMS}`],
    {
      ...step,
      makes: [...step.makes, PROGRAMS],
      inputs: [SCRIPT, source],
      // iPXE compiles its build date in.
      env: { SOURCE_DATE_EPOCH: String(facts.epoch) },
    },
  )
}
