import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listFirmware } from '#build/initrd/firmware.ts'

const test = suite('firmware of modules')

test('the names of .modinfo, each once it is named', () => {
  const module = Buffer.from(
    '\x7fELF…firmware=no/start\0license=GPL\0firmware=rtl_nic/rtl8168g-2.fw\0firmware=a.bin\0depends=\0',
  )
  assert.equal(listFirmware(module), ['rtl_nic/rtl8168g-2.fw', 'a.bin'])
})

test('a name that leads elsewhere is no name', () => {
  const module = Buffer.from('\0firmware=../../etc/shadow\0firmware=a b\0firmware=cut off')
  assert.equal(listFirmware(module), [])
})

test.run()
