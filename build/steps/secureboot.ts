/** Debian's signed boot loaders and our configuration of GRUB, under the names of what they are. */
import type { Arch } from '#appliance/appliance.ts'
import { programStep, type Step } from './step.ts'

interface SecureBootOptions {
  readonly arch: Arch
  /** The step that holds the packages. */
  readonly packages: string
}

const CONFIG = 'overlays/grub/grub.cfg'

/** The programs as the packages name them. */
const BINARIES = {
  x86_64: { shim: 'shim/shimx64', grub: 'grub/x86_64-efi-signed/grubnetx64' },
  arm64: { shim: 'shim/shimaa64', grub: 'grub/arm64-efi-signed/grubnetaa64' },
} as const satisfies Record<Arch, { readonly shim: string; readonly grub: string }>

/** Plans the step that makes `shim.efi`, `grub.efi` and `grub.cfg`. */
export function secureBootStep({ arch, packages }: SecureBootOptions): Step {
  const name = `secure-${arch}`
  const fileOf = (binary: string) => `@${packages}/root/usr/lib/${binary}.efi.signed`
  const [shim, grub] = [fileOf(BINARIES[arch].shim), fileOf(BINARIES[arch].grub)]
  return programStep(
    'signed-loaders',
    ['--arch', arch, '--shim', shim, '--grub', grub, '--config', CONFIG, '--out', `@${name}`],
    {
      name,
      says: `signed shim and GRUB (${arch})`,
      inputs: [shim, grub, CONFIG],
      makes: ['shim.efi', 'grub.efi', 'grub.cfg'],
    },
  )
}
