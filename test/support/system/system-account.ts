/** An account of the operating system for tests: in copies of /etc/passwd and /etc/shadow that only one mount namespace sees. */
import { execFileSync } from 'node:child_process'
import { chmod, chown, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const UID = 61_234

interface AccountOptions {
  /** `root`, or another name for a user of its own. */
  readonly name?: string
  /** Null: the account is in no file. */
  readonly shadow?: string | null
}

/** Hashes a password as /etc/shadow holds it. */
export const hashOf = (password: string): string =>
  execFileSync('openssl', ['passwd', '-6', '-stdin'], { input: password, encoding: 'utf8' }).trim()

/** `await using`: the copies are removed at the end; the files of the host are never written. */
export async function createSystemAccount({ name = 'root', shadow = '*' }: AccountOptions = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-account-'))
  const uid = name === 'root' ? 0 : UID
  const isNamed = (line: string) => line.startsWith(`${name}:`)
  for (const [file, mode, entry] of [
    ['passwd', 0o644, `${name}:x:${uid}:${uid}::/nonexistent:/usr/sbin/nologin`],
    ['shadow', 0o640, `${name}:${shadow}:20000:0:99999:7:::`],
  ] as const) {
    const host = `/etc/${file}`
    const others = (await readFile(host, 'utf8'))
      .split('\n')
      .filter((line) => line !== '' && !isNamed(line))
    const lines = shadow === null ? others : [...others, entry]
    await writeFile(join(dir, file), `${lines.join('\n')}\n`)
    await chmod(join(dir, file), mode)
    await chown(join(dir, file), 0, (await stat(host)).gid)
  }
  const mounts = ['passwd', 'shadow'].map((file) => `mount --bind ${join(dir, file)} /etc/${file}`)
  return {
    name,
    uid,
    /** Before a command: it sees the account. */
    prefix: [
      'unshare',
      '--mount',
      '--propagation=private',
      '--',
      'sh',
      '-c',
      `${mounts.join(' && ')} && exec "$@"`,
      'sh',
    ],
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  }
}
