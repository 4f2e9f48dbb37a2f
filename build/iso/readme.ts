/** The README on the images partition, for people; `build/programs/iso.ts` says what else is inside an ISO. */

import { IMAGE_ENDINGS } from '#appliance/disk-images.ts'

/** Renders the text with Windows line endings, which all systems can read. */
export const renderReadme = (version: string): string =>
  [
    `Flasher ${version}`,
    '',
    `Copy disk images here: ${IMAGE_ENDINGS.join(', ')}.`,
    'Machines that start from this stick offer them.',
    '',
    'This partition grows to the end of the stick when a machine first starts from it;',
    'until then it has room for 22 MB. Files that are already here are kept.',
    '',
  ].join('\r\n')
