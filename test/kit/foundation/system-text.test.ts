import { readFile, open } from 'node:fs/promises'
import { createServer } from 'node:net'
import { spawn } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { describeSystemError, Fault, hintOf, renderError } from '#kit/foundation/fault.ts'

/** Makes an error as Node throws it. */
const systemError = (code: string, facts: object = {}) =>
  Object.assign(new Error(`${code}: what libuv says`), { errno: -1, code, ...facts })

const thrownBy = async (act: () => Promise<unknown>): Promise<unknown> => {
  try {
    await act()
  } catch (thrown) {
    return thrown
  }
  throw new Error('nothing was thrown')
}

const test = suite('system text')

test('errors of the system are sentences that name the thing and say how to fix it', () => {
  const peer = { address: '10.0.0.9', port: 8080 }
  const rows: readonly (readonly [string, object, string, RegExp | null])[] = [
    [
      'EADDRINUSE',
      { address: '::', port: 80 },
      'port 80 on :: is already in use by another program',
      /sport = :80"/,
    ],
    [
      'EADDRINUSE',
      { address: '/run/x' },
      'the address /run/x is already in use by another program',
      /choose another/,
    ],
    [
      'EADDRNOTAVAIL',
      { address: '10.9.9.9' },
      'this machine has no address 10.9.9.9',
      /ip address/,
    ],
    ['EACCES', { path: '/srv/x' }, 'permission denied: /srv/x', /as root/],
    ['EACCES', { address: '::', port: 80 }, 'port 80 on :: may only be used by root', /1024/],
    ['EPERM', { path: '/dev/sda' }, 'not permitted: /dev/sda', /root/],
    ['ENOSPC', { path: '/srv/a.img' }, 'no space left on the disk of /srv/a.img', /Free space/],
    ['ENOSPC', {}, 'no space left on the disk', /Free space/],
    ['EROFS', { path: '/media/x' }, '/media/x is on a read-only file system', /mount it writable/],
    ['EIO', { path: '/dev/sdb' }, 'input/output error on /dev/sdb', /dmesg/],
    ['EBUSY', { path: '/dev/sdb' }, '/dev/sdb is in use by another program', /unmount/],
    ['ENOENT', { path: '/a' }, '/a does not exist', null],
    [
      'ENOENT',
      { path: 'lsblk', syscall: 'spawn lsblk' },
      'the program lsblk is not installed',
      /PATH/,
    ],
    ['ECONNREFUSED', peer, 'nothing listens on 10.0.0.9:8080', /Start the server/],
    ['ECONNREFUSED', { address: '::1', port: 1 }, 'nothing listens on [::1]:1', /Start the server/],
    ['ECONNREFUSED', {}, 'nothing listens on the server', /Start the server/],
    ['ETIMEDOUT', peer, '10.0.0.9:8080 does not answer', /firewall/],
    ['EHOSTUNREACH', peer, '10.0.0.9:8080 cannot be reached', /cable/],
    ['ENOTFOUND', { hostname: 'lab' }, 'the host name lab does not exist', /spelling/],
    ['EAI_AGAIN', { hostname: 'lab' }, 'the host name lab cannot be looked up', /resolv/],
    ['EMFILE', {}, 'too many open files', /ulimit/],
  ]
  for (const [code, facts, message, hint] of rows) {
    const thrown = systemError(code, facts)
    assert.is(renderError(thrown), message)
    if (hint === null) assert.is(hintOf(thrown), undefined)
    else assert.match(hintOf(thrown) ?? '', hint)
  }
})
test('what Node throws of itself is recognised', async () => {
  assert.is(renderError(await thrownBy(() => readFile('/nowhere/x'))), '/nowhere/x does not exist')
  await using full = await open('/dev/full', 'w')
  assert.match(renderError(await thrownBy(() => full.write('x'))), /^no space left on the disk/)
  const spawned = await new Promise((resolve) => spawn('/nowhere/tool').once('error', resolve))
  assert.is(renderError(spawned), 'the program /nowhere/tool is not installed')
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const second = createServer()
  const refused = await new Promise((resolve) => {
    second.once('error', resolve).listen(port, '127.0.0.1')
  })
  assert.is(renderError(refused), `port ${port} on 127.0.0.1 is already in use by another program`)
  await new Promise((resolve) => server.close(resolve))
  const unreachable = await thrownBy(() => fetch(`http://127.0.0.1:${port}/`))
  assert.is(renderError(unreachable), `nothing listens on 127.0.0.1:${port}`)
})
test('a Fault keeps its words, and has the hint of its cause where it has none', () => {
  const cause = systemError('EROFS', { path: '/x' })
  assert.is(renderError(new Fault('write-failed', 'ours', { cause })), 'ours')
  assert.match(hintOf(new Fault('write-failed', 'ours', { cause })) ?? '', /writable/)
  assert.is(hintOf(new Fault('write-failed', 'ours', { cause, hint: 'so' })), 'so')
})
test('anything else keeps its words', () => {
  for (const thrown of [
    Object.assign(new Error('ours'), { code: 'ENOENT' }),
    systemError('EWHATEVER'),
    systemError('constructor'),
    new Error('x', { cause: systemError('ENOENT') }),
    'ENOENT',
    null,
  ]) {
    assert.is(describeSystemError(thrown), null)
  }
  assert.is(renderError(new Error('ours')), 'ours')
})
test.run()
