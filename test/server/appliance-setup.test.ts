/** `flasher-setup` of the appliance: two servers by three answers in a real terminal, the way back, and nginx as the cache of a rack. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { readBlocks } from '#test/support/docs.ts'
import { findPort } from '#test/support/http/ports.ts'
import { onAppliance } from '#test/support/system/appliance-tree.ts'
import { EXITED, openTerminal } from '#test/support/terminal/tmux.ts'

const test = suite('flasher-setup')
const run = process.getuid?.() === 0 ? test : test.skip
const NGINX_SITE = 'overlays/server/usr/lib/flasher/server/images.nginx'
/** Long enough to be the key of what servers share, too. */
const PASSWORD = 'not-on-the-screen-and-long-enough'
const openFolder = () => mkdtempDisposable(join(tmpdir(), 'flasher-setup-'))

/** The lines for a shell, and what they printed. */
async function runSetup(script: string): Promise<string> {
  await using folder = await openFolder()
  const [program = '', ...words] = onAppliance(folder.path, ['sh', '-c', `exec 2>&1\n${script}`])
  return execFileSync(program, words, { encoding: 'utf8' })
}

/** What the server's user is told by the server's program, and root. */
const ASK = [
  'tell="flasher-web database detach 2>&1 || :"',
  'echo "root: $(HOME=/run FLASHER_PATHS_STATE_DIR=/run/root sh -c "$tell")"',
  'as_server="setpriv --reuid flasher --regid flasher --clear-groups"',
  'echo "flasher: $(HOME=/var/lib/flasher FLASHER_PATHS_STATE_DIR=/var/lib/flasher $as_server sh -c "$tell")"',
].join('\n')

/** Whether only root can run this checkout's programs here; says why. */
async function isForRootAlone(): Promise<boolean> {
  const said = await runSetup(ASK)
  const [root = '', flasher = ''] = said.split('\nflasher: ')
  const isAlone = root.includes('does not belong') && !flasher.includes('does not belong')
  if (isAlone)
    console.log(`skipped: another user cannot run the programs of this checkout: ${flasher}`)
  return isAlone
}

const SHOW =
  'cat /etc/flasher/flasher.env; stat -c "%n %U:%G %a" /etc/flasher/*; cat /run/systemctl'

run('three answers join two servers, and the database says so', async () => {
  if (await isForRootAlone()) return
  const port = await findPort()
  await using postgres = await startPostgres({ settings: ['listen_addresses=127.0.0.1'], port })
  await postgres.query('postgres', 'CREATE DATABASE fleet')
  await using folder = await openFolder()
  const url = `postgres://flasher@127.0.0.1:${port}/fleet?sslmode=disable`
  const command = ['sh', '-c', `flasher-setup && ${SHOW} && cat /etc/flasher/database-password`]
  await using terminal = await openTerminal(onAppliance(folder.path, command), {
    columns: 150,
    rows: 60,
  })
  await terminal.waitFor('Release line')
  await terminal.press('Enter')
  await terminal.waitFor('New password')
  await terminal.press('Enter')
  await terminal.waitFor('SSH key')
  await terminal.press('Enter')
  await terminal.waitFor('releases come from')
  await terminal.press('Enter')
  await terminal.waitFor('Repository there')
  await terminal.press('Enter')
  await terminal.waitFor('Database that two servers share')
  await terminal.press(url, 'Enter')
  await terminal.waitFor('Password of its user')
  await terminal.press(PASSWORD, 'Enter')
  const asked = await terminal.waitFor('The other server')
  assert.not.match(asked.join('\n'), PASSWORD)
  await terminal.press('http://192.0.2.11:8080/', 'Enter')
  const screen = (await terminal.waitFor(`${EXITED}0`)).join('\n')
  assert.match(screen, 'This server runs the current line.')
  assert.match(screen, `FLASHER_DATABASE_URL=${url}`)
  assert.match(screen, 'FLASHER_DATABASE_PASSWORD_FILE=/etc/flasher/database-password')
  assert.match(screen, 'FLASHER_DATABASE_KEY_FILE=/etc/flasher/database-password')
  assert.match(screen, 'FLASHER_PXE_SERVERS=http://192.0.2.11:8080\n')
  assert.match(screen, '/etc/flasher/database-password root:flasher 640')
  assert.match(screen, '/etc/flasher/flasher.env root:flasher 640')
  assert.match(screen, 'restart flasher-web.service')
  assert.match(screen, 'restart flasher-loaders.service')
  assert.match(screen, /^Database +answers$/m, screen)
  assert.match(screen, /^Tables +none yet; the first server makes them$/m)
})

run('a server brings its machines into the database, and takes them back', async () => {
  if (await isForRootAlone()) return
  const port = await findPort()
  await using postgres = await startPostgres({ settings: ['listen_addresses=127.0.0.1'], port })
  await postgres.query('postgres', 'CREATE DATABASE fleet')
  const url = `postgres://flasher@127.0.0.1:${port}/fleet?sslmode=disable`
  const said = await runSetup(
    [
      `flasher-setup --database '${url}'`,
      'echo short | flasher-setup --database-password',
      'flasher-setup --database none',
      'echo "not joined: $(cat /etc/flasher/flasher.env)"',
      `flasher-setup --database '${url}' --import`,
      'flasher-setup --database none',
      'echo "alone: $(cat /etc/flasher/flasher.env)"',
    ].join('\n'),
  )
  assert.match(said, 'With a password of 32 characters or more')
  assert.match(said, /^not joined: $/m, said)
  assert.match(said, 'The database has the state of this server.')
  assert.match(said, /^This server +has every change$/m)
  assert.match(said, 'The state of this server is detached.')
  assert.match(said, /^alone: $/m)
})

run('answers that cannot be are refused by name, and nothing is stored', async () => {
  const rows = [
    ['--database postgres://flasher:secret@db/fleet', 'the password is asked for by itself'],
    ['--database mysql://flasher@db/fleet', 'is not postgres://USER@HOST/NAME'],
    [`--database 'postgres://flasher@db/fleet x'`, 'has characters that an address has not'],
    ['--other-server 192.0.2.11', 'is not an address'],
    ['--rack-cache http://192.0.2.10', 'is not http://HOST:PORT'],
    ['--rack-cache http://192.0.2.10:8081/files', 'has a path'],
    ['--import', 'no database is set'],
    ['--database-password </dev/null', ''],
  ]
  const script = rows.map(([words]) => `flasher-setup ${words} || echo "code $?"`).join('\n')
  const said = await runSetup(`${script}\necho; echo "file: $(cat /etc/flasher/flasher.env)"`)
  for (const [words, sentence = ''] of rows) assert.match(said, sentence, words)
  assert.is(said.match(/^code [12]$/gm)?.length, rows.length, said)
  assert.match(said, /^file: $/m)
})

run('the earlier line and a shared database exclude each other', async () => {
  const said = await runSetup(
    [
      'echo FLASHER_DATABASE_URL=postgres://f@db/fleet >/etc/flasher/flasher.env',
      'flasher-setup --line earlier || :',
      'echo FLASHER_LINE=earlier >/etc/flasher/flasher.env',
      'flasher-setup --database postgres://f@db/fleet || :',
      'cat /etc/flasher/flasher.env',
    ].join('\n'),
  )
  assert.match(said, '--database none first')
  assert.match(said, '--line current first')
  assert.match(said, /^FLASHER_LINE=earlier\n$/m)
})

run('the files of the boot loaders name both servers, and one again', async () => {
  const port = await findPort()
  const said = await runSetup(
    [
      'mkdir -p /var/lib/tftpboot/grub && cd /var/lib/tftpboot && echo as shipped >grub/grub.cfg',
      'loaders() { /usr/lib/flasher/server/loaders || echo "code $?"; }',
      'name() { printf "FLASHER_SERVER_PORT=%s\\nFLASHER_PXE_SERVERS=%s\\n" "$1" "$2" >/etc/flasher/flasher.env; }',
      `name ${port} http://127.0.0.1:9`,
      '(set -a && . /etc/flasher/flasher.env && FLASHER_PATHS_STATE_DIR=/var/lib/flasher \\',
      '  FLASHER_SERVER_HOST=127.0.0.1 exec flasher-web >/run/web 2>&1) & web=$!',
      'loaders && loaders && grep -H . autoexec.ipxe grub/grub.cfg && stat -c "%n %a" * grub/*',
      'kill $web && wait $web || :',
      `name ${port} http://nowhere.invalid:8080 && loaders`,
      'grep -c 127.0.0.1:9 autoexec.ipxe',
      ': >/etc/flasher/flasher.env && loaders && echo "then: $(ls -d * grub/*) $(cat grub/grub.cfg)"',
    ].join('\n'),
  )
  assert.match(said, `The boot loaders here name http://127.0.0.1:${port} and http://127.0.0.1:9.`)
  for (const file of ['autoexec.ipxe', 'grub/grub.cfg']) {
    for (const address of [`127.0.0.1:${port}`, '127.0.0.1:9'])
      assert.match(said, new RegExp(`^${file}:.*${address}\\b`, 'm'))
    assert.match(said, new RegExp(`^${file} 644$`, 'm'))
  }
  assert.match(said, 'machines know one server only: the name nowhere.invalid of the other server')
  assert.match(said, /^code 1\n[1-9]/m, 'what was there stays')
  assert.match(said, 'then: grub\ngrub/grub.cfg as shipped')
})

run('nginx takes the place of the cache, and gives it back', async () => {
  const said = await runSetup(
    [
      'flasher-setup --rack-cache http://192.0.2.10:8081',
      'cat /etc/nginx/conf.d/flasher-images.conf',
      'nginx -t',
      'stat -c "%n %U" /var/cache/nginx',
      SHOW,
      ': >/run/systemctl',
      'flasher-setup --rack-cache none',
      `echo "then: $(tr '\\n' ';' </run/systemctl)$(cat /etc/flasher/flasher.env)$(ls /etc/nginx/conf.d)"`,
    ].join('\n'),
  )
  const [documented = ''] = readBlocks('cache.md', 'nginx')
  assert.match(said, documented.replaceAll('cache.example.org:8081', '192.0.2.10:8081'))
  assert.match(said, 'test is successful')
  assert.match(said, '/var/cache/nginx www-data')
  assert.match(said, 'FLASHER_WITHCACHE_URL=http://192.0.2.10:8081')
  assert.match(said, 'Images of http://192.0.2.10:8081 are cached here, on port 8081.')
  assert.match(
    said,
    'disable --now flasher-cache.service\nenable nginx.service\nrestart nginx.service',
  )
  assert.match(
    said,
    'then: disable --now nginx.service;enable flasher-cache.service;daemon-reload;restart flasher-web.service;restart flasher-loaders.service;restart flasher-cache.service;\n',
  )
})

test('the appliance has the documented file of nginx', async () => {
  const [documented = ''] = readBlocks('cache.md', 'nginx')
  assert.is(await readFile(NGINX_SITE, 'utf8'), documented)
})

test.run()
