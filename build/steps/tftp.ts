/** What machines load by TFTP, in its folder, under the names that the DHCP recipes use. */
import { ARCHS } from '#appliance/appliance.ts'
import { GRUB_CONFIG, GRUB_FILES, SHIM_FILES } from '#appliance/assets.ts'
import { programStep, type Step } from './step.ts'

const FILES: Readonly<Record<string, string>> = {
  'undionly.kpxe': '@ipxe-packages/root/usr/lib/ipxe/undionly.kpxe',
  'ipxe.efi': '@ipxe-x86_64/ipxe.efi',
  'ipxe-arm64.efi': '@ipxe-arm64/ipxe.efi',
  ...Object.fromEntries(
    ARCHS.flatMap((arch) => [
      [SHIM_FILES[arch], `@secure-${arch}/shim.efi`],
      [GRUB_FILES[arch], `@secure-${arch}/grub.efi`],
    ]),
  ),
  // The same for all architectures.
  [GRUB_CONFIG]: '@secure-x86_64/grub.cfg',
}

/** Makes `root`, which is copied over the tree of a server. */
export const tftpStep: Step = programStep(
  'tftp',
  ['--out=@tftp/root', ...Object.entries(FILES).map(([name, from]) => `${name}=${from}`)],
  {
    name: 'tftp',
    says: 'boot loaders for TFTP',
    inputs: Object.values(FILES),
    makes: ['root'],
  },
)
