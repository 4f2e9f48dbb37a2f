/** Puts a DHCP proxy into dnsmasq and takes it out again; what dnsmasq refuses is undone. */
import { open, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { renderActivation, type Activation } from './rules/dhcp.ts'
import { Fault, ifMissing } from '#kit/foundation/fault.ts'
import type { Finished, Shell } from '#kit/host/shell.ts'
import { moveName, removeName } from '#kit/host/folders.ts'

const ACTIVE_FILE = '/etc/dnsmasq.d/flasher-pxe-active.conf'

const FOLDER = dirname(ACTIVE_FILE)
/** dnsmasq ignores names that begin with a dot, so a power cut leaves nothing harmful. */
const TEMPORARY = join(FOLDER, '.flasher-pxe-active')
/** The folder as Debian's dnsmasq unit reads it. */
const TEST = ['dnsmasq', '--test', `--conf-dir=${FOLDER},.dpkg-dist,.dpkg-old,.dpkg-new`]
const RESTART = ['systemctl', 'restart', 'dnsmasq.service']
const LIMIT_MS = 25_000

type Tools = Pick<Shell, 'run'>

/** Needs root. Rejects with a Fault, and restores the configuration, if dnsmasq refuses it. */
export const activateProxy = (shell: Tools, activation: Activation): Promise<void> =>
  change(shell, () => write(renderActivation(activation)))

/** Needs root. False: there was no proxy. */
export async function deactivateProxy(shell: Tools): Promise<boolean> {
  if ((await readActive()) === null) return false
  await change(shell, remove)
  return true
}

/** Null: no such file. */
export const readActive = (): Promise<string | null> =>
  readFile(ACTIVE_FILE, 'utf8').catch(ifMissing(null))

async function change(shell: Tools, apply: () => Promise<void>): Promise<void> {
  const before = await readActive()
  const undo = () => (before === null ? remove() : write(before))
  await apply()
  const tested = await shell.run(TEST, { timeout: LIMIT_MS })
  if (tested.exitCode !== 0) {
    await undo()
    throw new Fault('tool-failed', `dnsmasq refuses its configuration: ${wordsOf(tested)}`, {
      hint: 'It was not restarted, and its configuration is as before.',
    })
  }
  const restarted = await shell.run(RESTART, { timeout: LIMIT_MS })
  if (restarted.exitCode === 0) return
  await undo()
  const again = await shell.run(RESTART, { timeout: LIMIT_MS })
  throw new Fault('tool-failed', `dnsmasq did not start: ${wordsOf(restarted)}`, {
    hint:
      again.exitCode === 0
        ? 'Its configuration is as before, and it runs again with that.'
        : 'Its configuration is as before, but it does not start with that either: journalctl -u dnsmasq shows why.',
  })
}

/** Complete or not at all; readable by all, whatever our umask: the server shows it. */
async function write(content: string): Promise<void> {
  await removeName(TEMPORARY)
  try {
    await using handle = await open(TEMPORARY, 'wx', 0o644)
    await handle.chmod(0o644)
    await handle.writeFile(content)
    await handle.sync()
    await moveName(TEMPORARY, ACTIVE_FILE)
  } catch (thrown) {
    await removeName(TEMPORARY)
    throw thrown
  }
}

const remove = () => removeName(ACTIVE_FILE)

const wordsOf = ({ stderr, stdout, exitCode }: Finished) =>
  stderr.trim() || stdout.trim() || `exit code ${exitCode}`
