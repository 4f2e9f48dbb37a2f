/** A disk image of 64 MiB that UEFI starts by Debian's shim. */
import { execFileSync } from 'node:child_process'

export const SHIM = '/usr/lib/shim/shimx64.efi.signed'

export function makeShimImage(path: string): void {
  execFileSync('sh', [
    '-ec',
    `truncate -s 64M "$0"
    printf 'label: gpt\\nstart=2048, size=120000, type=uefi\\n' | sfdisk -q "$0"
    mkfs.fat -F 32 -s 1 --offset 2048 "$0" 60000 >/dev/null 2>&1
    mmd -i "$0@@1M" ::/EFI ::/EFI/BOOT
    mcopy -i "$0@@1M" ${SHIM} ::/EFI/BOOT/BOOTX64.EFI`,
    path,
  ])
}
