/** The provisioning files that a server keeps for its machines: one folder per machine, for the server's user alone. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ifMissing } from '#kit/foundation/fault.ts'
import { renderHyphens, type Mac } from '#kit/net/rules/mac.ts'
import { makeFolder, removeName, removeTree, replaceFile } from '#kit/host/folders.ts'

export type ProvisionFiles = ReturnType<typeof createProvisionFiles>

/** `name` becomes part of a path, so it must come from a closed list. */
export function createProvisionFiles(dir: string) {
  const folderOf = (mac: Mac) => join(dir, renderHyphens(mac))
  return {
    list: (mac: Mac): Promise<readonly string[]> => readdir(folderOf(mac)).catch(ifMissing([])),
    /** Null: none is kept. */
    read: (mac: Mac, name: string): Promise<Buffer | null> =>
      readFile(join(folderOf(mac), name)).catch(ifMissing(null)),
    async save(mac: Mac, name: string, bytes: Uint8Array): Promise<void> {
      await makeFolder(folderOf(mac), 0o700)
      await replaceFile(join(folderOf(mac), name), bytes, 0o600)
    },
    remove: (mac: Mac, name: string): Promise<void> => removeName(join(folderOf(mac), name)),
    clear: (mac: Mac): Promise<void> => removeTree(folderOf(mac)),
  }
}
