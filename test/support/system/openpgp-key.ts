/** An OpenPGP key that only one test or one measurement has. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'zx'

/** Makes a key without a passphrase below `folder`; returns the path of the secret one. */
export async function makeOpenpgpKey(folder: string): Promise<string> {
  const env = { ...process.env, GNUPGHOME: join(folder, 'gnupg') }
  await mkdir(env.GNUPGHOME, { mode: 0o700 })
  const keyed = $({ quiet: true, verbose: false, env })
  await keyed`gpg --batch --pinentry-mode loopback --passphrase ${''} --quick-gen-key ${'flasher test <test@localhost>'} ed25519 sign never`
  const path = join(folder, 'secret.asc')
  await writeFile(path, (await keyed`gpg --batch --armor --export-secret-keys`).stdout)
  await keyed`gpgconf --kill all`
  return path
}
