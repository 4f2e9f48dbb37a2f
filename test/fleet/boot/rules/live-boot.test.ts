import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  isDriven,
  parseLiveBoot,
  renderDriverArgs,
  renderGuestArgs,
  renderWizardEnv,
} from '#fleet/boot/rules/live-boot.ts'

const test = suite('live boot')

test('a network boot: the server drives, one console for all', () => {
  const line =
    'imgfree initrd=a console=tty0 console=ttyS0,115200 flasher.server=http://10.0.2.2:8080 flasher.mac=52-54-00-00-00-01 flasher.token=aa.bb flasher.catalog=http://c/catalog.toml\n'
  const boot = parseLiveBoot(line)
  assert.is(isDriven(boot), true)
  const server = 'http://10.0.2.2:8080'
  assert.equal(renderDriverArgs(boot), ['--server', server, '--mac', '52-54-00-00-00-01'])
  assert.equal(renderGuestArgs(boot, server), [
    '--server',
    server,
    '--catalog',
    `${server}/catalog.toml`,
  ])
  assert.equal(renderWizardEnv(boot), {
    FLASHER_LIVE: '1',
    FLASHER_PXE_TOKEN: 'aa.bb',
    FLASHER_DEFAULT_CATALOG: 'http://c/catalog.toml',
  })
  assert.equal(renderWizardEnv({ ...boot, token: null, catalog: null }, server), {
    FLASHER_LIVE: '1',
    FLASHER_LIVE_SERVER: server,
    FLASHER_LIVE_MAC: '52-54-00-00-00-01',
  })
})

test('several servers: each is an argument of the wizard that is driven; the others reach hooks of a person', () => {
  const [one, two, three] = ['http://one:8080', 'https://two/below', 'http://10.0.0.3']
  const line = `flasher.server=${one} flasher.servers=${two}/,,ftp://x,${three} flasher.mac=a`
  const boot = parseLiveBoot(line)
  assert.equal(boot.others, [two, three])
  assert.is(
    renderDriverArgs(boot).join(' '),
    `--server ${one} --server ${two} --server ${three} --mac a`,
  )
  assert.is(renderWizardEnv(boot, two).FLASHER_LIVE_SERVERS, `${two},${three}`)
  for (const servers of ['', ' flasher.servers=', ' flasher.servers=:,']) {
    const alone = parseLiveBoot(`flasher.server=${one}${servers} flasher.mac=a`)
    assert.equal([alone.others, renderWizardEnv(alone, one).FLASHER_LIVE_SERVERS], [[], undefined])
  }
})

test('a stick: a wizard of its own on each console', () => {
  const boot = parseLiveBoot('quiet flasher.media=1234 flasher.server= flasher.mac')
  assert.is(isDriven(boot), false)
  assert.equal(renderGuestArgs(boot, null), [])
  assert.equal(renderWizardEnv(boot), { FLASHER_LIVE: '1' })
})

test('a server without a MAC drives nobody, but the wizard still gets its address', () => {
  const boot = parseLiveBoot('flasher.server=lab')
  assert.is(isDriven(boot), false)
  const server = 'http://lab'
  assert.equal(renderGuestArgs(boot, server), [
    '--server',
    server,
    '--catalog',
    `${server}/catalog.toml`,
  ])
  const wrong = parseLiveBoot('flasher.server=-lab/x')
  assert.equal(renderGuestArgs(wrong, null), ['--server=-lab/x'])
  assert.equal(renderGuestArgs({ ...wrong, mac: '52-54-00-00-00-01' }, null), [])
})

test.run()
