/** What the boot loader told the kernel of this machine. */
import { readFile } from 'node:fs/promises'

/** Empty where there is no /proc. */
export const readKernelLine = (path = '/proc/cmdline'): Promise<string> =>
  readFile(path, 'utf8').catch(() => '')
