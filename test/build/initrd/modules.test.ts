import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chooseModules, nameOf } from '#build/initrd/modules.ts'

const test = suite('modules of an initrd')

const TABLES = {
  dep: `kernel/drivers/net/virtio_net.ko: kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko
kernel/drivers/net/net_failover.ko: kernel/net/core/failover.ko
kernel/net/core/failover.ko:
kernel/drivers/net/ethernet/sfc/sfc.ko: kernel/drivers/mtd/mtd.ko
kernel/drivers/net/ethernet/intel/e1000e.ko:
kernel/drivers/net/phy/smsc-phy.ko:
kernel/drivers/net/phy/realtek.ko:
kernel/drivers/mtd/mtd.ko:
kernel/fs/ext4/ext4.ko:
`,
  softdep: `# Soft dependencies extracted from modules themselves.
softdep e1000e pre: smsc_phy
softdep ext4 pre: crc32c
`,
  alias: `# Aliases extracted from modules themselves.
alias virtio:d00000001v* virtio_net
alias pci:v00008086d*sv*sd*bc02sc*i* e1000e
alias mdio:0000 smsc_phy
alias fs-ext4 ext4
`,
}

test('takes what matches, what that needs, and what it likes beside it', () => {
  const take = ['drivers/net/virtio_net.ko', 'drivers/net/ethernet/*']
  const { paths } = chooseModules(TABLES, { take, leave: ['drivers/net/ethernet/sfc/*'] })
  assert.equal(paths, [
    'kernel/drivers/net/ethernet/intel/e1000e.ko',
    'kernel/drivers/net/net_failover.ko',
    'kernel/drivers/net/phy/smsc-phy.ko',
    'kernel/drivers/net/virtio_net.ko',
    'kernel/net/core/failover.ko',
  ])
})

test('the tables tell of nothing else', () => {
  const { tables } = chooseModules(TABLES, { take: ['drivers/net/ethernet/intel/*'], leave: [] })
  assert.is(
    tables.dep,
    'kernel/drivers/net/ethernet/intel/e1000e.ko:\nkernel/drivers/net/phy/smsc-phy.ko:\n',
  )
  assert.is(tables.softdep, 'softdep e1000e pre: smsc_phy\n')
  assert.is(tables.alias, 'alias pci:v00008086d*sv*sd*bc02sc*i* e1000e\nalias mdio:0000 smsc_phy\n')
})

test('what is left out still comes where it is needed', () => {
  const choice = { take: ['drivers/net/virtio_net.ko'], leave: ['net/core/*'] }
  assert.ok(chooseModules(TABLES, choice).paths.includes('kernel/net/core/failover.ko'))
})

test('patterns that match nothing are reported', () => {
  const choice = { take: ['fs/ext4/*', 'fs/ext5/*', 'drivers/net/e.*'], leave: [] }
  assert.equal(chooseModules(TABLES, choice).idle, ['fs/ext5/*', 'drivers/net/e.*'])
})

test('a module has one name, however its file is spelt', () => {
  assert.is(nameOf('kernel/drivers/net/phy/smsc-phy.ko'), 'smsc_phy')
  assert.is(nameOf('smsc_phy'), 'smsc_phy')
})

test.run()
