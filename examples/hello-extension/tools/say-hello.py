import argparse

if __name__ == "__main__":
  parser = argparse.ArgumentParser()
  parser.add_argument("--name", required=True, help="The name to say hello to.")
  args = parser.parse_args()
  print(f"Hello, {args.name}!")
