/** What people and makers call machines, images and disks: long, foreign and ordinary names for the pictures. */
import { IMAGES } from './web-machines.ts'

/** Names of machines by number; all others are named by their MAC address. */
export const NAMES: Readonly<Record<number, string>> = {
  1: 'build-agent-for-the-nightly-integration-tests-of-the-payments-07',
  2: 'サーバー室・東京データセンター北棟三号機',
  3: 'خادم قاعدة البيانات الرئيسي',
  4: 'web-01',
  6: 'db-01',
  9: 'Сервер сборки № 9',
  10: 'kiosk 🖨️ Empfang, Erdgeschoß',
  13: 'web-02',
  15: 'render-node-15',
  17: 'web-03',
}

/** The name has 100 characters. */
export const LONG_IMAGE =
  'company-workstation-image-with-cuda-12.8-and-the-monitoring-agent-2026.11.2-generic-amd64.v2.img.zst'
export const JAPANESE_IMAGE = '工場端末イメージ-2026年版.img.xz'

const [FIRST] = IMAGES

export const NAMED_IMAGES = [
  ...IMAGES,
  ...[LONG_IMAGE, JAPANESE_IMAGE].map((name, at) => ({
    ...FIRST,
    name,
    src: `https://images.invalid/named-${at}`,
    resolved_src: `https://images.invalid/named-${at}`,
  })),
]

/** The model is as long as NVMe and SCSI tools allow. */
export const LONG_MODEL =
  'Micron 7450 MTFDKCC3T8TFR Enterprise Mixed Use, Self-Encrypting, Power Loss Protection, U.3 15 mm, firmware E2MU200 of the maker'
