/** PXE proxy-DHCP from the settings page: the documented sudoers line and sandbox, a real sudo, dnsmasq and machine. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import {
  appendFile,
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readBlocks } from '../support/docs.ts'
import { createDnsmasqHost, HOST_ADDRESS } from '../support/net/dnsmasq-host.ts'

const PROGRAMS = fileURLToPath(new URL('../../runtime/bin/', import.meta.url))
const ANALYSE = '/usr/bin/systemd-analyze'
const PASSWORD = 'a password for tests'
const PORT = '8123'
const UID = 64_123
const [SUDOERS = ''] = readBlocks('earlier-line.md', 'sudoers')
const DROP_IN =
  readBlocks('earlier-line.md', 'ini').find((block) => block.includes('/etc/dnsmasq.d')) ?? ''

const test = suite('PXE proxy-DHCP from the settings page')

test('sudo takes the documented line', () => {
  const { status, stderr } = spawnSync('visudo', ['-c', '-f', '-'], {
    input: SUDOERS,
    encoding: 'utf8',
  })
  assert.is(status, 0, stderr)
  assert.is(SUDOERS.trim().split('\n').length, 1)
})

if (existsSync(ANALYSE)) {
  test('systemd finds nothing wrong with the drop-in', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'flasher-drop-in-'))
    try {
      const [unit = ''] = readBlocks('server.md', 'ini')
      const here = unit
        .replace('/usr/local/bin/flasher-web', process.execPath)
        .replaceAll(/^(User|Group)=flasher$/gm, '$1=daemon')
      await mkdir(join(dir, 'flasher-web.service.d'))
      await writeFile(join(dir, 'flasher-web.service'), here)
      await writeFile(join(dir, 'flasher-web.service.d/pxe.conf'), DROP_IN)
      const { status, stderr } = spawnSync(ANALYSE, ['verify', join(dir, 'flasher-web.service')], {
        encoding: 'utf8',
      })
      assert.is(stderr, '')
      assert.is(status, 0)
    } finally {
      await rm(dir, { recursive: true })
    }
  })
}

test('nothing of the unit sets NoNewPrivileges again, as systemd does by itself', () => {
  const [unit = ''] = readBlocks('server.md', 'ini')
  const changed = new Set(namesOf(DROP_IN))
  // systemd.exec(5), "NoNewPrivileges": these override it.
  const setting =
    /^(DynamicUser|LockPersonality|MemoryDenyWriteExecute|PrivateDevices|ProtectClock|ProtectHostname|ProtectKernel\w+|Restrict(AddressFamilies|Namespaces|Realtime|SUIDSGID)|SystemCall\w+|NoNewPrivileges)$/
  assert.equal(
    namesOf(unit).filter((name) => setting.test(name) && !changed.has(name)),
    [],
  )
})

/** Of the settings in a unit. */
const namesOf = (text: string) =>
  text.split('\n').flatMap((line) => /^(\w+)=/.exec(line)?.[1] ?? [])

/** The server as the unit runs it: its own user, and the capabilities that the drop-in leaves. */
async function startServer(host: Awaited<ReturnType<typeof createDnsmasqHost>>) {
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
    join(PROGRAMS, 'flasher-web.ts'),
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
      FLASHER_WEB_PORT: PORT,
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
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** Logs in, posts a form, and prints the page that it leads to. */
const POST = `
const [base, password, path, form] = process.argv.slice(1)
const post = (path, body, headers) =>
  fetch(base + path, { method: 'POST', body: new URLSearchParams(body), headers, redirect: 'manual' })
const entered = await post('/ui/login', { password }, {})
const cookie = entered.headers.getSetCookie()[0].split(';')[0]
const answer = path === '' ? null : await post(path, JSON.parse(form), { cookie })
const next = answer === null ? '/ui/settings' : answer.headers.get('location')
const page = await fetch(base + next, { headers: { cookie } })
process.stdout.write([answer?.status, await page.text()].join(' '))`

test('the page activates and deactivates, by sudo and within the sandbox', async () => {
  await using host = await createDnsmasqHost()
  await using _server = await startServer(host)
  const post = (path: string, form: Readonly<Record<string, string>> = {}) =>
    host.evaluate(POST, `http://${HOST_ADDRESS}:${PORT}`, PASSWORD, path, JSON.stringify(form))

  const offered = await post('')
  assert.match(offered, 'lan0 (192.168.98.0/24)')
  assert.not.match(offered, 'Deactivate PXE')

  const active = await post('/ui/settings/pxe-activate', { interface: 'lan0', subnet: '' })
  assert.match(active, /^303 /)
  assert.match(active, 'Deactivate PXE')
  assert.match(await readFile(host.active, 'utf8'), `interface=lan0\ndhcp-range=192.168.98.0,proxy`)
  const answer = JSON.stringify(await host.ask(0, 'ipxe'))
  assert.match(answer, `http://${HOST_ADDRESS}:${PORT}/pxe-bootstrap.ipxe`)

  for (const [form, reason] of [
    [{ interface: 'lan1', subnet: '' }, 'no interface of that name'],
    [{ interface: 'lan0', subnet: '10.0.0.0/8' }, 'no address in that subnet'],
    [{ interface: 'lan0', subnet: '10.0.0.0;x' }, 'must be written as'],
    [{}, 'no interface of that name'],
  ] as const) {
    const page = await post('/ui/settings/pxe-activate', form)
    assert.match(page, 'PXE was not activated: ')
    assert.match(page, reason)
  }

  await writeFile(join(host.folder, 'fail-once'), '')
  const failed = await post('/ui/settings/pxe-deactivate')
  assert.match(
    failed,
    'PXE was not deactivated: dnsmasq did not start: Job for dnsmasq.service failed.',
  )
  assert.match(failed, 'Deactivate PXE')

  assert.not.match(await post('/ui/settings/pxe-deactivate'), 'Deactivate PXE')
  assert.is(existsSync(host.active), false)
})

test.run()
