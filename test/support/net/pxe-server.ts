/** The machine server of the earlier line on a host with dnsmasq, as its documents have it run. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, chmod, chown, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readBlocks } from '../docs.ts'
import { type createDnsmasqHost, HOST_ADDRESS } from './dnsmasq-host.ts'

const PROGRAMS = fileURLToPath(new URL('../../../runtime/bin/', import.meta.url))
const PASSWORD = 'a password for tests'
export const PXE_PORT = '8123'
const UID = 64_123
export const [SUDOERS = ''] = readBlocks('earlier-line.md', 'sudoers')
export const [PASSWORD_DROP_IN = '', DROP_IN = ''] = readBlocks('earlier-line.md', 'ini')

/** Logs in, posts a form, and prints the page that it leads to. */
export const POST = `
const [base, password, path, form] = process.argv.slice(1)
const post = (path, body, headers) =>
  fetch(base + path, { method: 'POST', body: new URLSearchParams(body), headers, redirect: 'manual' })
const entered = await post('/ui/login', { password }, {})
const cookie = entered.headers.getSetCookie()[0].split(';')[0]
const answer = path === '' ? null : await post(path, JSON.parse(form), { cookie })
const next = answer === null ? '/ui/settings' : answer.headers.get('location')
const page = await fetch(base + next, { headers: { cookie } })
process.stdout.write([answer?.status, await page.text()].join(' '))`

export const GET = `
const [base, password, path] = process.argv.slice(1)
const body = new URLSearchParams({ password })
const entered = await fetch(base + '/ui/login', { method: 'POST', body, redirect: 'manual' })
const cookie = entered.headers.getSetCookie()[0].split(';')[0]
process.stdout.write(await (await fetch(base + path, { headers: { cookie } })).text())`

/**
 * The server as the unit runs it: its own user, the documented sudoers line, and the capabilities that
 * the drop-in leaves. Needs the packages sudo and dnsmasq-base.
 */
export async function startPxeServer(
  host: Awaited<ReturnType<typeof createDnsmasqHost>>,
  port: string = PXE_PORT,
) {
  const [, capabilities = ''] = /^CapabilityBoundingSet=(.*)$/m.exec(DROP_IN) ?? []
  const bounds = capabilities.split(' ').map((name) => `+${name.replace('CAP_', '').toLowerCase()}`)
  const sbin = join(host.folder, 'sbin')
  const state = join(host.folder, 'state')
  const etc = join(host.folder, 'etc')
  for (const folder of [sbin, state]) await mkdir(folder)
  await chmod(host.folder, 0o755)
  await chown(state, UID, UID)
  await symlink(process.execPath, join(sbin, 'node'))
  const helper = join(sbin, 'flasher-web-activate-pxe')
  await symlink(join(PROGRAMS, 'flasher-web-activate-pxe.mjs'), helper)
  const { stdout: hash } = spawnSync('openssl', ['passwd', '-6', '-stdin'], {
    input: PASSWORD,
    encoding: 'utf8',
  })
  await appendFile(join(etc, 'passwd'), `flasher:x:${UID}:${UID}::/nonexistent:/usr/sbin/nologin\n`)
  await appendFile(join(etc, 'group'), `flasher:x:${UID}:\n`)
  await appendFile(join(etc, 'shadow'), `flasher:${hash.trim()}:20000:0:99999:7:::\n`)
  await writeFile(join(etc, 'sudoers.d/flasher-web'), SUDOERS, { mode: 0o440 })
  const user = ['setpriv', `--reuid=${UID}`, `--regid=${UID}`, '--clear-groups']
  const bounding = `--bounding-set=-all,${bounds.join(',')}`
  const mount = ['sh', '-c', `mount --bind ${sbin} /usr/local/sbin && exec "$@"`, 'sh']
  const [program = '', ...args] = [
    ...host.enter,
    ...mount,
    ...user,
    bounding,
    process.execPath,
    join(PROGRAMS, 'flasher-web.mjs'),
  ]
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: state,
      FLASHER_LINE: 'earlier',
      FLASHER_STATE_DIR: state,
      FLASHER_CONFIG_FILE: '/dev/null',
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      FLASHER_WEB_PORT: port,
    },
  })
  const ended = once(child, 'exit')
  let said = ''
  const listening = new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text
        if (said.includes('Pages:')) resolve()
      })
    }
    child.once('exit', () => reject(new Error(said)))
  })
  await listening
  return {
    /** As the operator: posts a form, and gives the status and the page that it leads to. */
    post: (path: string, form: Readonly<Record<string, string>> = {}): Promise<string> =>
      host.evaluate(POST, `http://${HOST_ADDRESS}:${port}`, PASSWORD, path, JSON.stringify(form)),
    /** As the operator: the body of an answer. */
    get: (path: string): Promise<string> =>
      host.evaluate(GET, `http://${HOST_ADDRESS}:${port}`, PASSWORD, path),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
