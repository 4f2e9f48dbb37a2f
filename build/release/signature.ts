/** Signs files of a release with an SSH key, as `ssh-keygen -Y verify` and our servers verify them. */
import { rm } from 'node:fs/promises'
import { $ } from 'zx/core'
import { SIGNATURE_NAMESPACE, signatureOf } from '#appliance/assets.ts'

/**
 * Writes `<path>.sig`. A key with a passphrase asks for it; one that an agent holds is named by its public half.
 * @throws with the message of ssh-keygen.
 */
export async function signFile(path: string, key: string): Promise<void> {
  // It would ask whether to replace the one that is there.
  await rm(signatureOf(path), { force: true })
  await $({
    quiet: true,
    stdio: ['inherit', 'pipe', 'pipe'],
  })`ssh-keygen -Y sign -n ${SIGNATURE_NAMESPACE} -f ${key} ${path}`
}
