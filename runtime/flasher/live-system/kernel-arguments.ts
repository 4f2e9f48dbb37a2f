/** Reads the kernel command line of this machine. */
import { readFile } from 'node:fs/promises'

/** Reads `path`, which is /proc/cmdline; empty where there is none. */
export const readKernelArguments = (path: string): Promise<string> =>
  readFile(path, 'utf8').catch(() => '')
