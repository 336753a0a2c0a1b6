import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FileError } from "../errors.ts";
import { allWritten, createFolderAtomic, makeFolder, writeFileAtomic } from "./files.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-files-"));
});
afterEach(() => rm(folder, { recursive: true }));

/** A device on which every write fails as on a full disk (Linux). */
const fullDevice = "/dev/full";

describe("a file", () => {
  test("is replaced as a whole, and its folder is made", async () => {
    const path = join(folder, "new", "file.txt");
    await writeFileAtomic(path, "old");
    await writeFileAtomic(path, "new");
    expect(await readFile(path, "utf8")).toBe("new");
    expect(await readdir(join(folder, "new"))).toEqual(["file.txt"]);
  });

  test("below a file cannot be made, and the message says why", async () => {
    await writeFile(join(folder, "file"), "");
    const writing = writeFileAtomic(join(folder, "file", "below"), "text");
    await expect(writing).rejects.toThrow(FileError);
    await expect(writing).rejects.toThrow(/cannot write .*below: a part of the path is a file, not a folder/);
  });

  test("that cannot take the place of a folder leaves nothing behind", async () => {
    await mkdir(join(folder, "taken", "inner"), { recursive: true });
    await expect(writeFileAtomic(join(folder, "taken"), "text")).rejects.toThrow("it is a folder");
    expect(await readdir(folder)).toEqual(["taken"]);
  });
});

describe("a folder", () => {
  test("is made with those above it, by several at once, and again", async () => {
    const path = join(folder, "one", "two", "three");
    await Promise.all(Array.from({ length: 8 }, () => makeFolder(path)));
    await makeFolder(path);
    expect(await readdir(join(folder, "one", "two"))).toEqual(["three"]);
  });

  test.runIf(existsSync("/proc/self"))("below one that takes no new ones is refused at once", async () => {
    await expect(makeFolder("/proc/none/below")).rejects.toThrow(
      "cannot make the folder /proc/none: /proc takes no new folders; choose another place",
    );
  });

  test("appears with all that is in it", async () => {
    const path = join(folder, "made");
    await createFolderAtomic(path, async (target) => {
      expect(existsSync(path)).toBe(false);
      await writeFile(join(target, "one"), "1");
    });
    expect(await readdir(path)).toEqual(["one"]);
  });

  test("that exists is left as it is", async () => {
    await expect(createFolderAtomic(folder, async () => expect.fail("filled"))).rejects.toThrow(
      "exists already",
    );
  });

  test("does not appear when filling it fails, and what failed comes out as it is", async () => {
    const failure = new Error("boom");
    const making = createFolderAtomic(join(folder, "half"), async (target) => {
      await writeFile(join(target, "one"), "1");
      throw failure;
    });
    await expect(making).rejects.toBe(failure);
    expect(await readdir(folder)).toEqual([]);
  });

  test.skipIf(!existsSync(fullDevice))(
    `does not appear when the disk is full, and the message says so (needs ${fullDevice})`,
    async () => {
      const making = createFolderAtomic(join(folder, "full"), () => writeFile(fullDevice, "text"));
      await expect(making).rejects.toThrow(/cannot write .*full: the disk is full; free some space/);
      expect(await readdir(folder)).toEqual([]);
    },
  );
});

test("of several writes the failure of the first in order is thrown, after all have ended", async () => {
  const ended: string[] = [];
  const write = async (name: string, turns: number): Promise<void> => {
    for (let i = 0; i < turns; i++) await Promise.resolve();
    ended.push(name);
    if (name !== "good") throw new Error(name);
  };
  await expect(allWritten([write("second", 9), write("first", 1), write("good", 20)])).rejects.toThrow(
    "second",
  );
  expect(ended).toEqual(["first", "second", "good"]);
});
