/** A disk that firmware with Secure Boot starts: the Debian image, with Debian's signed shim and GRUB on it. */
import { copyFile, constants, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx'

const run = $({ quiet: true, verbose: false })

/** Where the EFI partition begins in the Debian image. */
const EFI_OFFSET = 2 ** 20
/** GRUB from the network looks below /grub of where it came from, a disk as well. */
const MENU = 'search --no-floppy --set=root --label root\nconfigfile ($root)/boot/grub/grub.cfg\n'

/** `image`: the raw Debian image, which stays as it is. */
export async function makeSecureDisk(
  image: string,
  path: string,
  { shim, grub }: { readonly shim: string; readonly grub: string },
): Promise<void> {
  await copyFile(image, path, constants.COPYFILE_FICLONE)
  const part = `${path}@@${EFI_OFFSET}`
  const folder = await mkdtemp(join(tmpdir(), 'flasher-secure-disk-'))
  try {
    const menu = join(folder, 'grub.cfg')
    await writeFile(menu, MENU)
    await run`mcopy -o -i ${part} ${shim} ::/EFI/BOOT/BOOTX64.EFI`
    await run`mcopy -i ${part} ${grub} ::/EFI/BOOT/grubx64.efi`
    await run`mmd -i ${part} ::/grub`
    await run`mcopy -i ${part} ${menu} ::/grub/grub.cfg`
  } finally {
    await rm(folder, { recursive: true })
  }
}
