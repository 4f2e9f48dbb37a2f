/** The address that a machine reports of its BMC: a person takes it over, the server never does. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { asJson } from '#test/support/server/server.ts'
import { createBoxes, macOf } from '#test/support/server/web-machines.ts'

const test = suite('the BMC that a machine reports')

const MAC = macOf(1)
const DISK = { path: '/dev/sda', size: '16G', serial: 'S1' }

test('it stands in the form where it may be contacted, is said where not, and nothing is done by itself', async () => {
  await using home = await createServerHome()
  const env = { FLASHER_ADMIN_PASSWORD: 'secret', FLASHER_POWER_NETWORKS: '10.20.0.0/16' }
  await using server = await home.start([], env)
  const { cookie } = await login(server.url, 'secret')
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, { ...init, headers: { ...init.headers, cookie } })
  const show = async () => {
    const page = await (await ask(`/ui/machines/${MAC}`)).text()
    const [, field = ''] = /<input[^>]*name="bmc_address"([^>]*)>/.exec(page) ?? []
    const [, value = ''] = /value="([^"]*)"/.exec(field) ?? []
    const says = (text: string) => page.includes(text)
    return { value, isOffered: says('before you save the form'), isOutside: says('is outside [') }
  }
  const report = async (bmc_address: string) => {
    const told = asJson({ disks: [DISK], bmc_address })
    assert.is((await fetch(`${server.url}/pxe/${MAC}/inventory`, told)).status, 204)
    return show()
  }
  await createBoxes(server.url).boot(1)

  assert.equal(await show(), { value: '', isOffered: false, isOutside: false })
  assert.equal(await report('10.20.0.11'), {
    value: '10.20.0.11',
    isOffered: true,
    isOutside: false,
  })
  // Reported later by somebody who wants the password, it does not change what was saved.
  assert.equal(await report('192.0.2.1'), { value: '', isOffered: false, isOutside: true })
  assert.equal(await report('<script>alert(1)</script>'), {
    value: '',
    isOffered: false,
    isOutside: true,
  })
  assert.is((await ask(`/machines/${MAC}/power`)).status, 404)

  const bmc = { way: 'wake-on-lan', address: '10.20.255.255' }
  assert.is((await ask(`/machines/${MAC}/power`, asJson(bmc, 'PUT'))).status, 200)
  assert.equal(await report('10.20.0.66'), {
    value: '10.20.255.255',
    isOffered: false,
    isOutside: false,
  })
  const { address } = (await (await ask(`/machines/${MAC}/power`)).json()).bmc
  assert.is(address, '10.20.255.255')
})

test.run()
