/** The list that Raspberry Pi Imager reads as a "custom repository": `GET /imager.json`, and a file of each release. */
/** One image as it is listed. */
export interface ListedImage {
  readonly name: string
  readonly description: string
  /** An absolute address, whose end tells the compression: `.img.zst`, `.img.xz`, `.iso`. */
  readonly url: string
  /** The decoded image's size in bytes; null: not known. */
  readonly rawSizeBytes: number | null
  /** The decoded image's SHA-256; null: not known, and then the Imager compares nothing. */
  readonly rawSha256: string | null
  /** The size of what is downloaded, in bytes; null: not known. */
  readonly sizeBytes: number | null
  /** `2026-11-26`; null: not known. */
  readonly releaseDate: string | null
  /** As a catalog names it, `x86_64` or `arm64`; null: not known. */
  readonly arch: string | null
  /**
   * `none`: it reads nothing of what the Imager asks its person for (name, user, Wi-Fi). Absent: not
   * known, and then the Imager asks nothing either.
   */
  readonly initFormat?: 'none'
}

/** The Imager shows a list only for a machine that somebody chose: these are what it can be. */
const DEVICES = [
  {
    name: 'Any machine',
    tags: ['any'],
    default: true,
    description: 'Lists every image',
    matching_type: 'inclusive',
  },
  {
    name: 'PC (x86-64)',
    tags: ['x86_64'],
    description: 'Lists images for 64-bit PCs and servers',
    matching_type: 'exclusive',
  },
  {
    name: 'Board or server (arm64)',
    tags: ['arm64'],
    description: 'Lists images for 64-bit Arm machines',
    matching_type: 'exclusive',
    architecture: 'armv8',
  },
] as const

/** The Imager has a list of its own; an image of neither word is shown for every machine. */
const ARCHITECTURES: Readonly<Record<string, string>> = { arm64: 'armv8' }

/** Another list, which the Imager opens as a folder. */
export interface ListedFolder {
  readonly name: string
  readonly description: string
  /** Its absolute address. */
  readonly url: string
}

/**
 * Renders the list.
 *
 * @param icon is the absolute address of a picture.
 */
export const renderImagerList = (
  images: readonly ListedImage[],
  icon: string,
  folders: readonly ListedFolder[] = [],
) => ({
  imager: { devices: DEVICES.map((device) => ({ ...device, icon })) },
  os_list: [
    ...folders.map(({ name, description, url }) => ({
      name,
      description,
      icon,
      subitems_url: url,
    })),
    ...images.map((image) => renderImage(image, icon)),
  ],
})

/** What is not known is left out: a wrong digest would stop the Imager, and a wrong size mislead it. */
function renderImage(image: ListedImage, icon: string) {
  const { name, description, url, rawSizeBytes, rawSha256, sizeBytes, releaseDate, arch } = image
  const { initFormat } = image
  const architecture = ARCHITECTURES[arch ?? '']
  return {
    name,
    description,
    icon,
    url,
    ...(rawSizeBytes === null ? {} : { extract_size: rawSizeBytes }),
    ...(rawSha256 === null ? {} : { extract_sha256: rawSha256 }),
    ...(sizeBytes === null ? {} : { image_download_size: sizeBytes }),
    ...(releaseDate === null ? {} : { release_date: releaseDate }),
    devices: ['any', ...(arch === null ? [] : [arch])],
    ...(architecture === undefined ? {} : { architecture }),
    ...(initFormat === undefined ? {} : { init_format: initFormat }),
  }
}
